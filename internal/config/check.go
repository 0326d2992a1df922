package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unfray/unfray/heal"
)

// check looks at what no value shows alone, and resolves names.
func (d *decoder) check(c *Config) {
	d.checkListeners(c)
	d.checkUpstreams(c)
	models := d.checkModels(c)
	if d.mappings[""] && !d.has("models") && !d.has("default_upstream") {
		d.fail(place{1, 1}, "models", "models is missing; give the models to serve, or a default_upstream")
	}
	d.checkKeys(c, models)
	d.checkRecovery(c, models)
}

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) checkListeners(c *Config) {
	first := map[string]int{}
	for i, l := range c.Listeners {
		path := at("listeners", i)
		if l.Address != "" {
			if j, ok := first[l.Address]; ok && !strings.HasSuffix(l.Address, ":0") {
				d.failAt(path+".address", "listeners[%d] has this address already", j)
			}
			first[l.Address] = i
			if !isLoopback(l.Address) && !d.has("keys") {
				d.warnAt(path+".address", "other machines can reach this address, and clients need no key; add keys, or listen on 127.0.0.1")
			}
		}
		cert, key := d.has(path+".tls_cert"), d.has(path+".tls_key")
		switch {
		case cert && !key:
			d.failAt(path+".tls_cert", "tls_key is missing; TLS needs both")
		case key && !cert:
			d.failAt(path+".tls_key", "tls_cert is missing; TLS needs both")
		case l.TLSCert != "" && l.TLSKey != "" && !d.reader.SkipFiles:
			d.checkTLS(l, path)
		}
	}
}

func (d *decoder) checkUpstreams(c *Config) {
	for _, u := range c.Upstreams {
		path := join("upstreams", u.Name)
		if key, file := path+".api_key", path+".api_key_file"; d.has(key) && d.has(file) {
			d.failAt(file, "api_key is there already; give one of them")
		} else if s := d.secrets[key] + d.secrets[file]; s != "" {
			u.APIKey = NewSecret(s)
		}
		first := map[string]int{}
		for i, endpoint := range u.URLs {
			if endpoint == nil {
				continue
			}
			s := endpoint.String()
			if j, ok := first[s]; ok {
				d.failAt(at(path+".urls", i), "urls[%d] is this one already", j)
				continue
			}
			first[s] = i
		}
		t := u.Timeouts
		if t.Total > 0 && t.FirstToken > t.Total {
			d.warnAt(path+".timeouts.first_token", "this is longer than total, which ends the request before")
		}
	}
}

// checkModels returns the models' names by name and alias.
func (d *decoder) checkModels(c *Config) map[string]string {
	taken := map[string]string{} // the path that has the name
	names := map[string]string{}
	take := func(name, model, path string) {
		if name == "" {
			return
		}
		if other, ok := taken[name]; ok {
			d.failAt(path, "%s has this name already; clients could not tell them apart", other)
			return
		}
		taken[name], names[name] = path, model
	}
	for i, m := range c.Models {
		take(m.Name, m.Name, at("models", i)+".name")
	}
	c.Default = d.resolve(c, c.defaultUpstream, "default_upstream")
	used := map[string]bool{c.defaultUpstream: true}
	for i := range c.Models {
		m, path := &c.Models[i], at("models", i)
		for j, alias := range m.Aliases {
			take(alias, m.Name, at(path+".aliases", j))
		}
		d.checkSource(c, m, path)
		d.checkHeal(m, path)
		used[m.upstream] = true
	}
	for _, u := range c.Upstreams {
		if path := join("upstreams", u.Name); !used[u.Name] {
			d.warnAt(path, "nothing uses this upstream")
		}
	}
	return names
}

// checkSource finds a model's upstream and what does not go with its source.
func (d *decoder) checkSource(c *Config, m *Model, path string) {
	file, up := d.has(path+".file"), d.has(path+".upstream")
	switch {
	case file && up:
		d.failAt(path+".upstream", "file is there already; a model has one of them")
		return
	case !file && !up:
		if d.mappings[path] {
			d.failAt(path, "the model has neither file nor upstream; give one of them")
		}
		return
	}
	source, foreign := "file", []string{"upstream_model", "tokenizer"}
	if up {
		source, foreign = "upstream", []string{"context", "parallel", "threads", "queue", "device"}
	}
	for _, k := range foreign {
		if d.has(path + "." + k) {
			d.failAt(path+"."+k, "this does not go with %s; remove it", source)
		}
	}
	if up {
		m.Upstream = d.resolve(c, m.upstream, path+".upstream")
	}
}

// resolve finds an upstream by its name. A name that is "" was reported, or is
// not there.
func (d *decoder) resolve(c *Config, name, path string) *Upstream {
	if name == "" {
		return nil
	}
	names := make([]string, 0, len(c.Upstreams))
	for _, u := range c.Upstreams {
		if u.Name == name {
			return u
		}
		names = append(names, u.Name)
	}
	d.failAt(path, "%s", noName("upstream", name, names))
	return nil
}

// noName says that there is nothing with that name.
func noName(what, name string, names []string) string {
	msg := fmt.Sprintf("there is no such %s", what)
	if near := nearest(name, names); near != "" {
		return msg + "; did you mean " + near + "?"
	}
	if len(names) == 0 {
		return msg + "; the file has none"
	}
	more := ""
	if len(names) > 10 {
		names, more = names[:10], ", …"
	}
	return fmt.Sprintf("%s; there are %s%s", msg, strings.Join(names, ", "), more)
}

// checkHeal reports healing that cannot be done or is named twice.
func (d *decoder) checkHeal(m *Model, path string) {
	for i, mode := range m.AllowHeal {
		if mode != "" && slices.Index(m.AllowHeal, mode) < i {
			d.failAt(at(path+".allow_heal", i), "the mode stands twice")
		}
	}
	if m.Upstream == nil || m.Upstream.Kind != Proxy {
		return
	}
	for _, k := range []string{".tokenizer", ".allow_heal"} {
		if d.has(path + k) {
			d.failAt(path+k, "an upstream of kind proxy heals nothing; remove it")
		}
	}
	if m.Heal != "" && m.Heal != heal.Off && m.Heal != heal.Auto {
		d.failAt(path+".heal", "an upstream of kind proxy heals nothing; only off goes")
	}
}

func (d *decoder) checkKeys(c *Config, models map[string]string) {
	firstName, firstHash := map[string]int{}, map[Hash]int{}
	for i := range c.Keys {
		k, path := &c.Keys[i], at("keys", i)
		if j, ok := firstName[k.Name]; ok && k.Name != "" {
			d.failAt(path+".name", "keys[%d] has this name already", j)
		} else {
			firstName[k.Name] = i
		}
		if d.checkKey(k, path) {
			if j, ok := firstHash[k.SHA256]; ok {
				d.failAt(path, "this is the key of keys[%d]", j)
			} else {
				firstHash[k.SHA256] = i
			}
		}
		for j, name := range k.Models {
			switch model, ok := models[name]; {
			case name == "":
			case !ok:
				d.failAt(at(path+".models", j), "%s", noName("model", name, modelNames(c)))
			default:
				k.Models[j] = model
			}
		}
	}
}

func modelNames(c *Config) []string {
	names := make([]string, 0, len(c.Models))
	for _, m := range c.Models {
		names = append(names, m.Name)
	}
	return names
}

// safeKeyBytes is what 128 random bits take in base64.
const safeKeyBytes = 22

// checkKey fills in the hash of a key, and reports whether there is one.
func (d *decoder) checkKey(k *Key, path string) bool {
	var given []string
	for _, f := range []string{".key", ".key_file", ".sha256"} {
		if d.has(path + f) {
			given = append(given, f)
		}
	}
	switch {
	case len(given) > 1:
		d.failAt(path+given[1], "%s is there already; give one of key, key_file and sha256", given[0][1:])
		return false
	case len(given) == 0:
		if d.mappings[path] {
			d.failAt(path, "the key itself is missing; give one of key, key_file and sha256")
		}
		return false
	}
	if s := d.secrets[path+given[0]]; s != "" {
		if len(s) < safeKeyBytes {
			d.warnAt(path+given[0], "the key is short; use %d random letters and digits or more, which nobody can guess from its hash", safeKeyBytes)
		}
		k.SHA256 = HashOf(s)
		return true
	}
	return d.hashes[path+given[0]]
}
