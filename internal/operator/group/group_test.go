package group

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// fakeManager runs until its context ends, or for a time.
type fakeManager struct {
	manager.Manager
	name      string
	failAfter time.Duration
	log       *[]string
}

// Start implements manager.Manager.
func (m *fakeManager) Start(ctx context.Context) error {
	*m.log = append(*m.log, "start "+m.name)
	var failed <-chan time.Time
	if m.failAfter > 0 {
		failed = time.After(m.failAfter)
	}
	select {
	case <-ctx.Done():
		*m.log = append(*m.log, "stop "+m.name)
		return nil
	case <-failed:
		*m.log = append(*m.log, "fail "+m.name)
		return errors.New("failed")
	}
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if len(log) != len(want) {
				t.Fatalf("%s: got %q, want %q", what, log, want)
			}
			for i := range want {
				if log[i] != want[i] {
					t.Fatalf("%s: got %q, want %q", what, log, want)
				}
			}
			log = nil
		}
		run := func(key string, failAfter time.Duration) *Run {
			return &Run{Key: key, New: func(context.Context) (manager.Manager, error) {
				return &fakeManager{name: key, failAfter: failAfter, log: &log}, nil
			}}
		}
		g := New("test", clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Start(ctx) }()
		expect("nothing is set")

		g.Set(run("a", 0))
		expect("set", "start a")
		g.Set(run("a", 0))
		expect("set again")
		g.Set(run("b", 0))
		expect("another one", "stop a", "start b")
		if got := g.Running(); got != "b" {
			t.Errorf("Running() = %q", got)
		}
		g.Set(nil)
		expect("nothing", "stop b")
		g.Set(nil)
		g.Set(run("c", time.Minute))
		expect("set after nothing", "start c")
		g.Set(nil)
		g.Set(run("c", time.Minute))
		expect("the same for another time", "stop c", "start c")

		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the test
		expect("it failed", "fail c")
		time.Sleep(firstDelay) //nolint:forbidigo // as above
		expect("it is started again", "start c")
		cancel()
		expect("the process ends", "stop c")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
