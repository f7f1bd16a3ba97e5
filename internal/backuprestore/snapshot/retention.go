package snapshot

import (
	"math"
	"time"
)

// Policy is the rule by which snapshots are kept.
type Policy string

const (
	// Exponential keeps fewer snapshots the older they are: all of the previous hour, the latest full one of each hour of
	// the previous day, of each day of the previous week, and of each of the previous four weeks.
	// Source: concepts.txt, Backup and Restore, "Backup Policy".
	Exponential Policy = "Exponential"
	// LimitBased keeps a number of full snapshots.
	LimitBased Policy = "LimitBased"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Retention configures which snapshots are kept.
type Retention struct {
	Policy Policy
	// MaxFull is how many full snapshots LimitBased keeps.
	MaxFull int
	// Deltas is how long deltas are kept whose changes are in a later full snapshot, if that is longer than by the policy.
	Deltas time.Duration
}

// tiers are the periods of Exponential. A full snapshot younger than age is kept if no later one was made in the same
// stretch of time of the given length. A stretch is fixed in time (an hour of the clock, a day in UTC, a week that begins
// on Monday), so that it does not matter when and how often garbage is collected.
var tiers = []struct{ age, stretch time.Duration }{
	{time.Hour, 0},
	{day, time.Hour},
	{week, day},
	{4 * week, week},
}

// Garbage returns the snapshots that are not kept. The latest full snapshot and the deltas after it are always kept.
func Garbage(snapshots []Snapshot, r Retention, now time.Time) []Snapshot {
	var (
		garbage []Snapshot
		latest  Snapshot
		fulls   int // seen so far, from the latest on
	)
	later := make(map[time.Duration]int64, len(tiers)) // the stretch that the previous one seen is in
	for _, chain := range Chains(snapshots) {
		full := chain.Full
		if fulls++; fulls == 1 {
			latest = full
		}
		if keepFull(full, r, fulls, now, later) || fulls == 1 {
			continue
		}
		garbage = append(garbage, full)
	}
	if fulls == 0 {
		return nil
	}
	keepDeltas := r.Deltas
	if r.Policy == Exponential {
		keepDeltas = max(keepDeltas, tiers[0].age)
	}
	for _, s := range snapshots {
		if s.Kind == Delta && s.LastRevision <= latest.LastRevision && now.Sub(s.CreatedOn) > keepDeltas {
			garbage = append(garbage, s)
		}
	}
	Sort(garbage)
	return garbage
}

// keepFull reports whether a full snapshot is kept. It is called for all of them, from the latest to the earliest.
func keepFull(full Snapshot, r Retention, number int, now time.Time, later map[time.Duration]int64) bool {
	if r.Policy == LimitBased {
		return number <= r.MaxFull
	}
	keep := false
	for _, tier := range tiers {
		at := stretchOf(full.CreatedOn, tier.stretch)
		previous, seen := later[tier.stretch]
		if now.Sub(full.CreatedOn) <= tier.age && (!seen || previous != at || tier.stretch == 0) {
			keep = true
		}
		later[tier.stretch] = at
	}
	return keep
}

// stretchOf numbers the stretches of time.
func stretchOf(t time.Time, length time.Duration) int64 {
	if length == 0 {
		return math.MinInt64
	}
	// The zero time is a Monday, and Truncate counts from it.
	return t.UTC().Truncate(length).Unix()
}
