package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

var now = time.Date(2026, 11, 18, 12, 30, 0, 0, time.UTC) // a Wednesday

func TestName(t *testing.T) {
	for name, want := range map[string]Snapshot{
		"Full-00000000-00000101-1795275230.gz": {Kind: Full, LastRevision: 101, CreatedOn: time.Unix(1795275230, 0).UTC(), Compression: Gzip},
		"Incr-00000102-1000000250-1795275290":  {Kind: Delta, StartRevision: 102, LastRevision: 1000000250, CreatedOn: time.Unix(1795275290, 0).UTC()},
		"Full-00000000-00000007-1.zst.final":   {Kind: Full, LastRevision: 7, CreatedOn: time.Unix(1, 0).UTC(), Compression: Zstd, Final: true},
	} {
		got, err := Parse(name)
		if err != nil {
			t.Errorf("Parse(%q): %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", name, diff)
		}
		if got := want.Name(); got != name {
			t.Errorf("Name() = %q, want %q", got, name)
		}
	}
	for _, name := range []string{
		"", "Full", "Full-00000000-00000101-1795275230.gz.part", "full-00000000-00000101-1795275230", "Full-0-1-2", "Incr-00000005-00000004-1",
		"Full-00000000-9999999999999999999-1", "Full-00000000-00000101-1.zip", "../Full-00000000-00000101-1",
	} {
		if s, err := Parse(name); !errors.Is(err, ErrName) {
			t.Errorf("Parse(%q) = %+v, %v", name, s, err)
		}
	}
}

// full and delta make snapshots of a certain age.
func full(revision int64, age time.Duration) Snapshot {
	return Snapshot{Kind: Full, LastRevision: revision, CreatedOn: now.Add(-age)}
}

func delta(from, to int64, age time.Duration) Snapshot {
	return Snapshot{Kind: Delta, StartRevision: from, LastRevision: to, CreatedOn: now.Add(-age)}
}

func TestChains(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshots []Snapshot
		want      []Chain
	}{
		"nothing":                   {},
		"deltas without a full one": {snapshots: []Snapshot{delta(1, 5, 0)}},
		"one full":                  {snapshots: []Snapshot{full(5, 0)}, want: []Chain{{Full: full(5, 0)}}},
		"in any order":              {snapshots: []Snapshot{delta(8, 9, 0), full(5, 0), delta(6, 7, 0)}, want: []Chain{{Full: full(5, 0), Deltas: []Snapshot{delta(6, 7, 0), delta(8, 9, 0)}}}},
		"deltas before are left":    {snapshots: []Snapshot{delta(2, 5, 0), full(5, 0)}, want: []Chain{{Full: full(5, 0)}}},
		"a delta may overlap":       {snapshots: []Snapshot{full(5, 0), delta(3, 7, 0)}, want: []Chain{{Full: full(5, 0), Deltas: []Snapshot{delta(3, 7, 0)}}}},
		"nothing behind a gap":      {snapshots: []Snapshot{full(5, 0), delta(6, 7, 0), delta(9, 10, 0)}, want: []Chain{{Full: full(5, 0), Deltas: []Snapshot{delta(6, 7, 0)}}}},
		"earlier ones as a reserve": {snapshots: []Snapshot{full(5, 2), delta(6, 9, 1), full(9, 0)}, want: []Chain{{Full: full(9, 0)}, {Full: full(5, 2), Deltas: []Snapshot{delta(6, 9, 1)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Chains(tc.snapshots)); diff != "" {
				t.Errorf("Chains() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGarbage(t *testing.T) {
	const h, d = time.Hour, 24 * time.Hour
	exponential := Retention{Policy: Exponential}
	for name, tc := range map[string]struct {
		retention Retention
		snapshots []Snapshot
		want      []Snapshot
	}{
		"all of the previous hour": {
			retention: exponential,
			snapshots: []Snapshot{full(1, 59*time.Minute), delta(2, 3, 50*time.Minute), full(3, 40*time.Minute), full(4, 35*time.Minute), delta(5, 6, time.Minute)},
		},
		"the latest of each hour for a day": {
			retention: exponential,
			snapshots: []Snapshot{full(1, 5*h), full(2, 5*h-10*time.Minute), full(3, 4*h), full(4, 10*time.Minute)},
			want:      []Snapshot{full(1, 5*h)},
		},
		"the latest of each day for a week": {
			retention: exponential,
			// Saturday morning and evening, Sunday.
			snapshots: []Snapshot{full(1, 4*d), full(2, 4*d-10*h), full(3, 3*d), full(4, 0)},
			want:      []Snapshot{full(1, 4*d)},
		},
		"the latest of each of four weeks": {
			retention: exponential,
			// Thursday and Friday of the week before last; Thursday five weeks ago.
			snapshots: []Snapshot{full(1, 34*d), full(2, 13*d), full(3, 12*d), full(4, 0)},
			want:      []Snapshot{full(1, 34*d), full(2, 13*d)},
		},
		"deltas go after an hour, if a full snapshot has what they have": {
			retention: exponential,
			snapshots: []Snapshot{full(1, 3*h), delta(2, 3, 2*h), full(3, 90*time.Minute), delta(4, 5, 80*time.Minute), delta(6, 7, 10*time.Minute)},
			want:      []Snapshot{delta(2, 3, 2*h)},
		},
		"or later, as configured": {
			retention: Retention{Policy: Exponential, Deltas: 3 * h},
			snapshots: []Snapshot{full(1, 6*h), delta(2, 3, 5*h), delta(4, 5, 2*h), full(5, 90*time.Minute)},
			want:      []Snapshot{delta(2, 3, 5*h)},
		},
		"the latest full one is kept however old, and what follows it": {
			retention: exponential,
			snapshots: []Snapshot{full(1, 90*d), full(2, 80*d), delta(3, 4, 70*d)},
			want:      []Snapshot{full(1, 90*d)},
		},
		"a number of full snapshots": {
			retention: Retention{Policy: LimitBased, MaxFull: 2},
			snapshots: []Snapshot{full(1, 3*h), delta(2, 3, 2*h), full(3, 2*h), full(4, h), delta(5, 6, 0)},
			want:      []Snapshot{full(1, 3*h), delta(2, 3, 2*h)},
		},
		"nothing without a full snapshot": {
			retention: Retention{Policy: LimitBased, MaxFull: 1},
			snapshots: []Snapshot{delta(2, 3, 90*d)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Garbage(tc.snapshots, tc.retention, now)); diff != "" {
				t.Errorf("Garbage() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGarbageOverTime collects garbage every 12 hours for 40 days of hourly snapshots. What is left must be what the policy
// names, whenever garbage was collected.
func TestGarbageOverTime(t *testing.T) {
	var kept []Snapshot
	at := now
	for hour := range 40 * 24 {
		at = now.Add(time.Duration(hour) * time.Hour)
		kept = append(kept, Snapshot{Kind: Full, LastRevision: int64(hour + 1), CreatedOn: at})
		if hour%12 == 0 {
			garbage := Garbage(kept, Retention{Policy: Exponential}, at)
			kept = slices.DeleteFunc(kept, func(s Snapshot) bool { return slices.Contains(garbage, s) })
		}
	}
	garbage := Garbage(kept, Retention{Policy: Exponential}, at)
	kept = slices.DeleteFunc(kept, func(s Snapshot) bool { return slices.Contains(garbage, s) })
	var hours, days, weeks int
	for _, s := range kept {
		switch age := at.Sub(s.CreatedOn); {
		case age <= day:
			hours++
		case age <= week:
			days++
		default:
			weeks++
		}
	}
	// An age of exactly a day still belongs to it, so there are 25; a week ends between two Sundays, so there may be 3 or 4.
	if diff := cmp.Diff([]int{25, 6, 3}, []int{hours, days, weeks}); diff != "" {
		t.Errorf("kept by hour, day and week (-want +got):\n%s", diff)
	}
}

func events(n int) []*mvccpb.Event {
	var out []*mvccpb.Event
	for i := range n {
		out = append(out, &mvccpb.Event{Type: mvccpb.PUT, Kv: &mvccpb.KeyValue{Key: fmt.Append(nil, "key", i), Value: bytes.Repeat([]byte{byte(i)}, i%50), ModRevision: int64(i + 2)}})
	}
	return out
}

func encode(t *testing.T, events []*mvccpb.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewDeltaWriter(&out)
	for _, event := range events {
		if err := w.Write(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDelta(t *testing.T) {
	for _, compression := range []Compression{None, Gzip, LZW, Zlib, Zstd} {
		for _, n := range []int{0, 1, 2, 200} {
			t.Run(fmt.Sprintf("%d events%s", n, compression), func(t *testing.T) {
				want := events(n)
				var stored bytes.Buffer
				w, err := compression.Writer(&stored)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(encode(t, want)); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				r, err := compression.Reader(&stored)
				if err != nil {
					t.Fatal(err)
				}
				var got []*mvccpb.Event
				err = ReadDelta(r, func(event *mvccpb.Event) error {
					got = append(got, event)
					return nil
				})
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
					t.Errorf("ReadDelta(): %v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

// TestDamagedDelta changes and cuts every byte: nothing of that may go unnoticed.
func TestDamagedDelta(t *testing.T) {
	content := encode(t, events(5))
	ignore := func(*mvccpb.Event) error { return nil }
	for i := range content {
		damaged := bytes.Clone(content)
		damaged[i] ^= 0x10
		if err := ReadDelta(bytes.NewReader(damaged), ignore); !errors.Is(err, ErrChecksum) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := ReadDelta(bytes.NewReader(content[:i]), ignore); !errors.Is(err, ErrChecksum) {
			t.Errorf("cut at byte %d: %v", i, err)
		}
	}
}

func FuzzReadDelta(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 80))
	f.Fuzz(func(_ *testing.T, content []byte) {
		_ = ReadDelta(bytes.NewReader(content), func(*mvccpb.Event) error { return nil })
	})
}

func TestVerified(t *testing.T) {
	content := encode(t, events(3))
	got, err := io.ReadAll(Verified(bytes.NewReader(content)))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("Verified(): %v, %d bytes of %d", err, len(got), len(content))
	}
	if _, err := io.ReadAll(Verified(bytes.NewReader(content[1:]))); !errors.Is(err, ErrChecksum) {
		t.Errorf("Verified() of damaged content: %v", err)
	}
}
