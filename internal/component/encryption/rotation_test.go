package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorder is a server with one process. It records what it does, and fails at one step.
type recorder struct {
	saved  State
	steps  []string
	failAt int
}

var errInterrupted = errors.New("interrupted")

func (r *recorder) step(format string, args ...any) error {
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
	if len(r.steps) == r.failAt {
		return errInterrupted
	}
	return nil
}

func (r *recorder) Save(_ context.Context, state State) error {
	r.saved = state
	return nil
}

func (r *recorder) Use(_ context.Context, keys []Key) error { return r.step("use %s", names(keys)) }
func (r *recorder) AwaitUsed(context.Context) error         { return r.step("await") }
func (r *recorder) Rewrite(context.Context) error           { return r.step("rewrite") }

func names(keys []Key) string {
	var out []string
	for _, key := range keys {
		out = append(out, key.Name)
	}
	return strings.Join(out, ",")
}

func TestReconcile(t *testing.T) {
	old, added := Key{Name: "old"}, Key{Name: "new"}
	for name, tc := range map[string]struct {
		state State
		want  []string
	}{
		"a new key encrypts what is stored": {
			state: State{Keys: []Key{old}}, want: []string{"use old", "await", "rewrite", "use old"},
		},
		"nothing to do": {state: State{Keys: []Key{old}, Rewritten: true}, want: []string{"use old"}},
		"a rotation: all processes read with the new key before one writes with it": {
			state: State{Keys: []Key{old, added}, Rewritten: true, Rotating: true},
			want:  []string{"use old,new", "await", "use new,old", "await", "rewrite", "use new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &recorder{}
			if err := Reconcile(t.Context(), server, tc.state); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, server.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if len(server.saved.Keys) != 1 || !server.saved.Rewritten || server.saved.Rotating {
				t.Errorf("the saved state is %+v", server.saved)
			}
			// Wherever it is interrupted, the next run completes it: the rest happens, beginning with the step that failed or one before.
			for failAt := range len(tc.want) {
				server := &recorder{failAt: failAt + 1}
				if err := Reconcile(t.Context(), server, tc.state); !errors.Is(err, errInterrupted) {
					t.Fatalf("step %d does not fail: %v", failAt, err)
				}
				rest := &recorder{}
				if err := Reconcile(t.Context(), rest, server.saved); err != nil {
					t.Fatal(err)
				}
				if n := len(rest.steps); n < len(tc.want)-failAt || !slices.Equal(rest.steps, tc.want[len(tc.want)-n:]) {
					t.Errorf("interrupted at step %d, the next run does: %v", failAt, rest.steps)
				}
			}
		})
	}
}

func TestRotate(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	first := NewState(now)
	if len(first.Keys) != 1 || len(first.Keys[0].Secret) != keyLength || first.Rewritten {
		t.Errorf("NewState() = %d keys, Rewritten %t", len(first.Keys), first.Rewritten)
	}
	if again := first.Rotate(now); len(again.Keys) != 1 {
		t.Error("a key is rotated before data is encrypted with it")
	}
	first.Rewritten = true
	second := first.Rotate(now.Add(time.Hour))
	if len(second.Keys) != 2 || second.Keys[0].Name != first.Keys[0].Name || second.Keys[1].Name == first.Keys[0].Name || !second.Rotating {
		t.Errorf("Rotate() has the keys %s", names(second.Keys))
	}
	if diff := cmp.Diff(second, second.Rotate(now.Add(2*time.Hour))); diff != "" {
		t.Errorf("a rotation in progress changes (-before +after):\n%s", diff)
	}
}
