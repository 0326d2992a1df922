package fim

import "github.com/unfray/unfray/vocab"

// File is another file that the model is shown before the one to be filled in.
type File struct {
	Name string // a path, as the model should see it
	Text []byte
}

// HasContext reports whether the model has tokens that set files apart.
func (l *Layout) HasContext() bool { return l.Repo != vocab.None && l.File != vocab.None }

// Context appends what stands between BOS and the sections in a prompt of
// several files: the repository's name, the files, and the name of the file to
// be filled in. If that is more than limit tokens (0: no limit), whole files are
// left out, the first ones first, since those nearest to the sections count
// most; dropped is how many. Without files, or if the model has no tokens to set
// them apart, it appends nothing, and dropped counts all files.
func (l *Layout) Context(dst []vocab.ID, repo string, files []File, name string, limit int) (ids []vocab.ID, dropped int) {
	if len(files) == 0 || !l.HasContext() {
		return dst, len(files)
	}
	head := l.named(nil, l.Repo, repo+l.family.repoEnd, nil)
	tail := l.named(nil, l.File, name+"\n", nil)
	// The last file first, as far as there is room.
	room := limit - len(head) - len(tail)
	parts := make([][]vocab.ID, 0, len(files))
	for i := len(files) - 1; i >= 0; i-- {
		if limit > 0 && room <= 0 {
			break
		}
		text := files[i].Text
		if limit > 0 && len(text)/max(1, l.tok.Vocab().MaxLen()) > room {
			break // without encoding what cannot fit
		}
		part := l.named(nil, l.File, files[i].Name+"\n", text)
		if room -= len(part); limit > 0 && room < 0 {
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return dst, len(files)
	}
	ids = append(dst, head...)
	for i := len(parts) - 1; i >= 0; i-- {
		ids = append(ids, parts[i]...)
	}
	return append(ids, tail...), len(files) - len(parts)
}

// named appends a marker, a name, and a text that ends its last line.
func (l *Layout) named(dst []vocab.ID, marker vocab.ID, name string, text []byte) []vocab.ID {
	all := append([]byte(name), text...)
	if n := len(text); n > 0 && text[n-1] != '\n' {
		all = append(all, '\n')
	}
	return l.tok.EncodeAfter(append(dst, marker), []vocab.ID{marker}, all)
}
