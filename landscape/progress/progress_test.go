package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStep(t *testing.T) {
	for name, tc := range map[string]struct {
		live bool
		do   func() error
		want string
	}{
		"a quick step is one line": {
			do:   func() error { return nil },
			want: "✓ Work (0.0s)\n",
		},
		"a log gets a line of a long step now and then": {
			do:   func() error { time.Sleep(45 * time.Second); return nil }, //nolint:forbidigo // of a synctest bubble
			want: "… Work: detail (20.0s)\n… Work: detail (40.0s)\n✓ Work (45.0s)\n",
		},
		"a terminal gets the same line again and again, after a while": {
			live: true,
			do:   func() error { time.Sleep(2300 * time.Millisecond); return nil }, //nolint:forbidigo // of a synctest bubble
			want: "\r\033[K… Work: detail (2.0s)\r\033[K… Work: detail (2.2s)\r\033[K✓ Work (2.3s)\n",
		},
		"a failure is marked": {
			do:   func() error { return errors.New("broken") },
			want: "✗ Work (0.0s)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				p := New(&out)
				p.live = tc.live
				err := p.Step(t.Context(), "Work", "/log", func(_ context.Context, detail func(string)) error {
					detail("detail")
					return tc.do()
				})
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("output (-want +got):\n%s", diff)
				}
				var failed *StepError
				if errors.As(err, &failed) && failed.Error() != "Work: broken\nSee the log: /log" {
					t.Errorf("error = %q", failed.Error())
				}
			})
		})
	}
}

func TestStepEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewJSON(&out)
		work := func(result error) {
			_ = p.Step(t.Context(), "Work", "/log", func(_ context.Context, detail func(string)) error {
				detail("half")
				time.Sleep(2 * time.Second) //nolint:forbidigo // of a synctest bubble
				detail("half")
				return result
			})
		}
		work(nil)
		work(errors.New("broken"))
		var got []Event
		for decoder := json.NewDecoder(&out); decoder.More(); {
			var e Event
			if err := decoder.Decode(&e); err != nil {
				t.Fatal(err)
			}
			e.Time = time.Time{}
			got = append(got, e)
		}
		want := []Event{
			{Step: "Work", State: StateStarted},
			{Step: "Work", State: StateRunning, Detail: "half"},
			{Step: "Work", State: StateSucceeded, Seconds: 2},
			{Step: "Work", State: StateStarted},
			{Step: "Work", State: StateRunning, Detail: "half"},
			{Step: "Work", State: StateFailed, Seconds: 2, Error: "broken", Log: "/log"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
