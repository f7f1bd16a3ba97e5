// Package snapshot defines the names, the contents and the retention of snapshots, and which ones belong together.
package snapshot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Kind is the kind of a snapshot.
type Kind string

const (
	// Full snapshots hold the whole database as of their last revision.
	Full Kind = "Full"
	// Delta snapshots hold the changes from their start revision to their last revision.
	Delta Kind = "Incr"
)

// Snapshot has the properties of a snapshot, all of which are in its name.
type Snapshot struct {
	// Kind is Full or Delta.
	Kind Kind `json:"kind"`
	// StartRevision is the first revision in it; 0 for a full one.
	StartRevision int64 `json:"startRevision"`
	// LastRevision is the revision up to which it is complete. A full one may already have some later changes in it.
	LastRevision int64 `json:"lastRevision"`
	// CreatedOn is when it was taken, to the second.
	CreatedOn time.Time `json:"createdOn"`
	// Compression is how it is compressed; None if it is not.
	Compression Compression `json:"compressionSuffix"`
	// Final is set for the last one before its etcd was migrated or deleted.
	Final bool `json:"isFinal"`
}

const finalSuffix = ".final"

// Names have the revisions in 8 digits, so that they sort by revision for as long as an etcd can live.
var namePattern = regexp.MustCompile(`^(Full|Incr)-(\d{8,19})-(\d{8,19})-(\d{1,12})(\.gz|\.Z|\.zlib|\.zst)?(\.final)?$`)

// Name returns the name of the snapshot in its store, such as Incr-00000101-00000250-1732200000.gz.
func (s Snapshot) Name() string {
	name := fmt.Sprintf("%s-%08d-%08d-%d%s", s.Kind, s.StartRevision, s.LastRevision, s.CreatedOn.Unix(), s.Compression)
	if s.Final {
		name += finalSuffix
	}
	return name
}

// ErrName is returned for a name that is not that of a snapshot.
var ErrName = errors.New("not the name of a snapshot")

// Parse returns the snapshot with a name.
func Parse(name string) (Snapshot, error) {
	parts := namePattern.FindStringSubmatch(name)
	if parts == nil {
		return Snapshot{}, fmt.Errorf("%q: %w", name, ErrName)
	}
	numbers := make([]int64, 3)
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(parts[i+2], 10, 64); err != nil {
			return Snapshot{}, fmt.Errorf("%q: %w", name, ErrName)
		}
	}
	if numbers[0] > numbers[1] {
		return Snapshot{}, fmt.Errorf("%q: %w: its last revision is before its first", name, ErrName)
	}
	return Snapshot{
		Kind: Kind(parts[1]), StartRevision: numbers[0], LastRevision: numbers[1], CreatedOn: time.Unix(numbers[2], 0).UTC(),
		Compression: Compression(parts[5]), Final: parts[6] != "",
	}, nil
}

// Sort sorts snapshots by the revision they reach, then by age; a full one comes before the deltas that reach as far.
func Sort(snapshots []Snapshot) {
	slices.SortFunc(snapshots, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.LastRevision, b.LastRevision), a.CreatedOn.Compare(b.CreatedOn), cmp.Compare(a.Name(), b.Name()))
	})
}

// Chain is a full snapshot and the deltas that lead on from it.
type Chain struct {
	Full   Snapshot
	Deltas []Snapshot
}

// Latest is the last snapshot of the chain.
func (c Chain) Latest() Snapshot {
	if len(c.Deltas) > 0 {
		return c.Deltas[len(c.Deltas)-1]
	}
	return c.Full
}

// LastRevision is the revision that a restore of the chain reaches.
func (c Chain) LastRevision() int64 { return c.Latest().LastRevision }

// Chains returns what can be restored, best first: a chain for each full snapshot, the latest one first. The deltas of a
// chain follow each other without a gap; what lies behind a gap cannot be used.
func Chains(snapshots []Snapshot) []Chain {
	sorted := slices.Clone(snapshots)
	Sort(sorted)
	var chains []Chain
	for _, full := range slices.Backward(sorted) {
		if full.Kind != Full {
			continue
		}
		chain := Chain{Full: full}
		for _, delta := range sorted {
			last := chain.LastRevision()
			if delta.Kind == Delta && delta.StartRevision <= last+1 && delta.LastRevision > last {
				chain.Deltas = append(chain.Deltas, delta)
			}
		}
		chains = append(chains, chain)
	}
	return chains
}

// MarshalJSON adds the name.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type fields Snapshot
	return json.Marshal(struct {
		fields
		Name string `json:"snapName"`
	}{fields(s), s.Name()})
}
