package timeline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/golden"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

var chart = Chart{
	Title: `Creation of "a" & <b>`, Begin: begin,
	Tasks: []flow.Timing{
		{ID: "api", Start: at(6), End: at(9.25), After: []string{"etcd", "dns"}},
		{ID: "secrets", Start: at(0.5), End: at(1)},
		{ID: "dns", Start: at(0.5), End: at(2)},
		{ID: "etcd", Start: at(1), End: at(6), After: []string{"secrets"}},
		{ID: "broken", Start: at(2), End: at(3), After: []string{"dns"}, Err: errors.New("no quota")},
	},
	Marks: []Mark{{"first answer", at(4)}, {"healthy", at(13)}},
}

func TestSVG(t *testing.T) {
	var out bytes.Buffer
	if err := chart.SVG(&out); err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, out.String())
		}
	}
	golden.Text(t, "chart.svg", out.String())
}

func TestPicture(t *testing.T) {
	type seen struct{ Name, Class string }
	p := chart.picture()
	var got []seen
	for _, r := range p.Rows {
		got = append(got, seen{r.Name, r.Class})
	}
	want := []seen{{"secrets", "critical"}, {"dns", "bar"}, {"etcd", "critical"}, {"broken", "failed"}, {"api", "critical"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if want := "The critical path: 3 tasks, of which etcd took longest, 5.0 s."; p.Description != want {
		t.Errorf("description is %q, want %q", p.Description, want)
	}
	if last := p.Ticks[len(p.Ticks)-1]; last.Text != "12 s" {
		t.Errorf("the last tick is %q", last.Text)
	}
	if empty := (Chart{Begin: begin}).picture(); len(empty.Rows) != 0 || empty.Description != "No task ran." {
		t.Errorf("the chart of nothing is %+v", empty)
	}
}

func TestTick(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 12 * time.Second: time.Second, 13 * time.Second: 2 * time.Second, 40 * time.Second: 5 * time.Second,
		100 * time.Second: 10 * time.Second, 5 * time.Minute: 30 * time.Second, time.Hour: 5 * time.Minute,
	} {
		if got := tick(span); got != want {
			t.Errorf("tick(%s) = %s, want %s", span, got, want)
		}
	}
}
