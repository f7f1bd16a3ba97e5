// Package timeline draws the tasks of a flow over time, with the critical path.
package timeline

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"text/template"
	"time"

	"gardener.cloud/gardener/pkg/flow"
)

// Chart is a picture of one run of a flow.
type Chart struct {
	Title string
	// Begin is the zero of the axis.
	Begin time.Time
	// Tasks become rows, ordered by their start.
	Tasks []flow.Timing
	// Marks become lines from the top to the bottom.
	Marks []Mark
}

// Mark is an event besides the tasks.
type Mark struct {
	Text string
	At   time.Time
}

// Measures of the picture, in pixels.
const (
	width      = 960
	names      = 232 // the end of the names of tasks
	left       = 240 // where the time begins
	right      = 920 // where it ends
	head       = 72
	rowHeight  = 18
	barHeight  = 12
	foot       = 36
	textWidth  = 60 // of "123.4 s"
	ticksLimit = 12
)

//go:embed chart.svg.tmpl
var source string

var svg = template.Must(template.New("chart.svg").Parse(source))

type picture struct {
	Title, Description                      string
	Width, Height, InnerWidth, InnerHeight  int
	Top, Bottom, AxisText, Names, BarHeight int
	Ticks                                   []label
	Marks                                   []label
	Rows                                    []row
}

type label struct {
	X, TextX, Text string
	Y              int
	Left           bool
}

type row struct {
	Name, Class, X, Width, TextX, Took string
	Y, TextY                           int
	Critical, Left                     bool
}

// SVG writes the chart, with colours for light and dark backgrounds.
func (c Chart) SVG(out io.Writer) error {
	return svg.Execute(out, c.picture())
}

func (c Chart) picture() picture {
	tasks := slices.Clone(c.Tasks)
	slices.SortStableFunc(tasks, func(a, b flow.Timing) int { return a.Start.Compare(b.Start) })
	path := flow.CriticalPath(c.Tasks)
	s := scale{begin: c.Begin, span: time.Second}
	for _, t := range tasks {
		s.span = max(s.span, t.End.Sub(c.Begin))
	}
	for _, m := range c.Marks {
		s.span = max(s.span, m.At.Sub(c.Begin))
	}
	top := head + len(c.Marks)*rowHeight
	p := picture{
		Title: c.Title, Description: describe(path), Width: width, InnerWidth: width - 1, Names: names, BarHeight: barHeight,
		Top: top, Bottom: top + len(tasks)*rowHeight,
	}
	p.Height = p.Bottom + foot
	p.InnerHeight, p.AxisText = p.Height-1, p.Bottom+18
	for at, step := time.Duration(0), tick(s.span); at <= s.span; at += step {
		p.Ticks = append(p.Ticks, label{X: pixels(s.x(c.Begin.Add(at))), Text: fmt.Sprintf("%d s", int(at.Seconds()))})
	}
	for i, m := range c.Marks {
		x := s.x(m.At)
		l := label{Text: fmt.Sprintf("%s, %s", m.Text, seconds(m.At.Sub(c.Begin))), Y: head + (i+1)*rowHeight - 4, Left: x > (left+right)/2}
		l.X, l.TextX = pixels(x), beside(x, x, l.Left)
		p.Marks = append(p.Marks, l)
	}
	for i, t := range tasks {
		from, to := s.x(t.Start), s.x(t.End)
		y := top + i*rowHeight
		r := row{Name: t.ID, Class: "bar", Y: y + (rowHeight-barHeight)/2, TextY: y + rowHeight - 5, Took: seconds(t.Duration())}
		r.Critical = slices.ContainsFunc(path, func(step flow.Timing) bool { return step.ID == t.ID })
		switch {
		case t.Err != nil:
			r.Class = "failed"
		case r.Critical:
			r.Class = "critical"
		}
		r.Left = to+textWidth > width
		r.X, r.Width, r.TextX = pixels(from), pixels(max(to-from, 1.5)), beside(from, to, r.Left)
		p.Rows = append(p.Rows, r)
	}
	return p
}

// describe describes the critical path in a sentence.
func describe(path []flow.Timing) string {
	if len(path) == 0 {
		return "No task ran."
	}
	longest := slices.MaxFunc(path, func(a, b flow.Timing) int { return cmp.Compare(a.Duration(), b.Duration()) })
	return fmt.Sprintf("The critical path: %d tasks, of which %s took longest, %s.", len(path), longest.ID, seconds(longest.Duration()))
}

// scale converts times to positions.
type scale struct {
	begin time.Time
	span  time.Duration
}

func (s scale) x(at time.Time) float64 {
	return left + (right-left)*at.Sub(s.begin).Seconds()/s.span.Seconds()
}

// tick is the distance of the lines of the axis: not too many of them, at round numbers.
func tick(span time.Duration) time.Duration {
	step := time.Second
	for _, factor := range []time.Duration{2, 5, 10, 15, 30, 60, 120, 300, 600} {
		if span/step > ticksLimit {
			step = factor * time.Second
		}
	}
	return step
}

// beside is the anchor of a text: after its bar, or before it where there is no room after it.
func beside(from, to float64, before bool) string {
	const gap = 4
	if before {
		return pixels(from - gap)
	}
	return pixels(to + gap)
}

func pixels(x float64) string { return fmt.Sprintf("%.1f", x) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
