package grammar

import "fmt"

// solve finds the instructions from which the end of their rule can be reached:
// by any bytes, or by none.
func (c *compiler) solve(bytes bool) []bool {
	holds := make([]bool, len(c.code))
	before := make([][]int32, len(c.code))
	var work []int32
	for pc, in := range c.code {
		at := int32(pc)
		switch in.op {
		case iReturn:
			holds[pc] = true
			work = append(work, at)
		case iRead:
			if bytes && c.sets[in.set] != (byteSet{}) {
				before[in.next] = append(before[in.next], at)
			}
		case iCall:
			entry := c.entries[in.rule]
			before[entry] = append(before[entry], at)
			before[in.next] = append(before[in.next], at)
		case iBranch:
			for _, to := range in.alts {
				before[to] = append(before[to], at)
			}
		}
	}
	for len(work) > 0 {
		pc := work[len(work)-1]
		work = work[:len(work)-1]
		for _, from := range before[pc] {
			in := &c.code[from]
			if holds[from] || in.op == iCall && !(holds[in.next] && holds[c.entries[in.rule]]) {
				continue
			}
			holds[from] = true
			work = append(work, from)
		}
	}
	return holds
}

// prune takes out what can never be completed, so that whatever reads a byte
// can be.
func (c *compiler) prune(productive []bool) {
	for pc := range c.code {
		in := &c.code[pc]
		if !productive[pc] {
			*in = instr{op: iBranch}
			continue
		}
		if in.op == iBranch {
			kept := in.alts[:0]
			for _, to := range in.alts {
				if productive[to] {
					kept = append(kept, to)
				}
			}
			in.alts = kept
		}
	}
}

func (c *compiler) findNullable() {
	empty := c.solve(false)
	c.nullable = make([]bool, len(c.entries))
	for i, entry := range c.entries {
		c.nullable[i] = empty[entry]
	}
}

// findOrder computes the openings of rules and orders the rules by them. It is
// an error if that cannot be done: a rule is then left recursive.
func (c *compiler) findOrder() error {
	openings := make([]opening, len(c.entries))
	seen := make([]int32, len(c.code)) // the rule plus one that was here last
	for i, entry := range c.entries {
		work := []int32{entry}
		for len(work) > 0 {
			pc := work[len(work)-1]
			work = work[:len(work)-1]
			if seen[pc] == int32(i)+1 {
				continue
			}
			seen[pc] = int32(i) + 1
			switch in := &c.code[pc]; in.op {
			case iRead:
				openings[i].reads = append(openings[i].reads, pc)
			case iBranch:
				work = append(work, in.alts...)
			case iCall:
				openings[i].calls = append(openings[i].calls, callSite{in.rule, in.next})
				if c.nullable[in.rule] {
					work = append(work, in.next)
				}
			}
		}
	}
	finished, err := c.sortRules(openings)
	if err != nil {
		return err
	}
	c.order = make([]int32, len(finished))
	c.opening = make([]opening, len(finished))
	for i, r := range finished {
		at := len(finished) - 1 - i
		c.order[r] = int32(at)
		c.opening[at] = openings[r]
	}
	return nil
}

// sortRules lists rules so that each comes after those that its opening calls.
func (c *compiler) sortRules(openings []opening) ([]int32, error) {
	const open, done = 1, 2
	type visit struct {
		rule int32
		next int // of its calls
	}
	mark := make([]uint8, len(openings))
	var finished []int32
	var path []visit
	for start := range openings {
		if mark[start] == 0 {
			mark[start] = open
			path = append(path, visit{rule: int32(start)})
		}
		for len(path) > 0 {
			top := &path[len(path)-1]
			calls := openings[top.rule].calls
			if top.next == len(calls) {
				mark[top.rule] = done
				finished = append(finished, top.rule)
				path = path[:len(path)-1]
				continue
			}
			to := calls[top.next].rule
			top.next++
			switch mark[to] {
			case open:
				// A part made a rule here has no name; one around it has.
				at := to
				for i := len(path) - 1; i >= 0 && c.ruleName(at) == ""; i-- {
					at = path[i].rule
				}
				cause := ErrLeftRecursion
				if name := c.ruleName(at); name != "" {
					cause = fmt.Errorf("rule %s: %w", name, ErrLeftRecursion)
				}
				return nil, c.src.place(c.rulePos[at], cause)
			case 0:
				mark[to] = open
				path = append(path, visit{rule: to})
			}
		}
	}
	return finished, nil
}

func (c *compiler) ruleName(r int32) string {
	if int(r) < len(c.src.rules) {
		return c.src.rules[r].name
	}
	return ""
}

// findClasses numbers the bytes that some set tells apart.
func (c *compiler) findClasses() {
	c.classes = 1
	for i := range c.sets {
		if c.classes == len(c.classOf) {
			break
		}
		set := &c.sets[i]
		var outside [256]bool // by class: whether a byte of it is not in set
		for b := range 256 {
			if !set.has(byte(b)) {
				outside[c.classOf[b]] = true
			}
		}
		var split [256]uint8 // by class: that of its bytes in set, if not 0
		for b := range 256 {
			if old := c.classOf[b]; outside[old] && set.has(byte(b)) {
				if split[old] == 0 {
					split[old] = uint8(c.classes)
					c.classes++
				}
				c.classOf[b] = split[old]
			}
		}
	}
	for b := range 256 {
		c.example[c.classOf[b]] = byte(b)
	}
}
