package loop
import ("testing";"os";"path/filepath")
func TestZZ(t *testing.T){ n,size:=0,0
eachText(1<<40, func(p string, text []byte) {  n++; size+=len(text)
 if l:=Find(text,Options{}); l!=nil { t.Logf("%s: %s %s at %d %d × %d len %d %q",p,l.Kind,l.Context,l.Start,l.Copies,l.Period,l.End-l.Start, l.Unit)}
})
 t.Log(n,size)}
func TestYY(t *testing.T){ fs,_:=filepath.Glob("/tmp/i8/loopgen/*.txt"); for _,f:=range fs { b,_:=os.ReadFile(f); 
 d:=New(Options{}); at:=0
 for i:=range b { if l:=d.Write(b[i:i+1]); l!=nil&&at==0 {at=i} }
 l:=d.Close(); if l==nil {t.Log(f,"none");continue}
 t.Logf("%s found at %d of %d: %s %s [%d,%d) p %d cut %d: ...%q",f,at,len(b),l.Kind,l.Context,l.Start,l.End,l.Period,l.Cut,b[max(0,l.Cut-60):l.Cut]) } }
