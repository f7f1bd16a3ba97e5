package plan

import "time"

// Backoff keeps groups from growing for a while after they failed to.
type Backoff struct {
	// Initial is how long a group rests after its first failure. It doubles with each further one, up to Max.
	Initial, Max time.Duration
	// Reset is how long after a failure the next one counts as the first.
	Reset time.Duration

	groups map[string]rest
}

type rest struct {
	last, until time.Time
	length      time.Duration
	reason      string
}

// Fail lets a group rest. A failure while it rests changes nothing.
func (b *Backoff) Fail(group, reason string, now time.Time) {
	r := b.groups[group]
	if now.Before(r.until) {
		return
	}
	switch {
	case r.length == 0 || now.Sub(r.last) > b.Reset:
		r.length = b.Initial
	default:
		r.length = min(2*r.length, b.Max)
	}
	r.last, r.until, r.reason = now, now.Add(r.length), reason
	if b.groups == nil {
		b.groups = map[string]rest{}
	}
	b.groups[group] = r
}

// Succeed ends the rest of a group, and the next failure is its first.
func (b *Backoff) Succeed(group string) { delete(b.groups, group) }

// Resting returns until when a group rests and why; the zero time if it does not.
func (b *Backoff) Resting(group string, now time.Time) (time.Time, string) {
	if r := b.groups[group]; now.Before(r.until) {
		return r.until, r.reason
	}
	return time.Time{}, ""
}
