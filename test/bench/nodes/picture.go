package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
)

// Measures of the picture, in pixels.
const (
	width, left, right = 960, 64, 900
	head               = 60
	markHeight         = 18
	podsHeight         = 220
	nodesHeight        = 110
	gap                = 36
	foot               = 40
	mostTicks          = 12
)

//go:embed chart.svg.tmpl
var source string

var svg = template.Must(template.New("chart.svg").Parse(source))

// picture shows pods above nodes over time, as steps.
type picture struct {
	Title                       string
	Width, Height               int
	InnerWidth, InnerHeight     int
	Top, Bottom, AxisText       int
	Left, Right                 int
	Ticks, Marks, PodsY, NodesY []label
	Lines                       []line
}

type label struct {
	Text string
	X    string
	Y    int
	// Before says that the text ends at X, as there is no room behind it.
	Before bool
}

// line is one quantity: its class in the style sheet, and its name beside its legend.
type line struct {
	Class, Name, Points string
	LegendX, LegendY    int
}

// panel is an area with an axis of its own.
type panel struct {
	top, height, most int
}

func (p panel) y(value int) int { return p.top + p.height - value*p.height/max(p.most, 1) }

// drawing is the picture of what was observed.
func drawing(title string, states []state, marks []mark) picture {
	begin, end := states[0].at, states[len(states)-1].at
	if len(marks) > 0 {
		begin = marks[0].at
	}
	span := max(end.Sub(begin), time.Second)
	x := func(at time.Time) string {
		return fmt.Sprintf("%.1f", left+max(0, float64(right-left)*at.Sub(begin).Seconds()/span.Seconds()))
	}
	top := head + markHeight*len(marks) + gap/2
	pods, nodes := panel{top: top, height: podsHeight}, panel{top: top + podsHeight + gap, height: nodesHeight}
	for _, s := range states {
		pods.most, nodes.most = max(pods.most, s.pods), max(nodes.most, s.nodes)
	}
	p := picture{Title: title, Width: width, InnerWidth: width - 1, Left: left, Right: right, Top: top, Bottom: nodes.top + nodesHeight}
	p.Height = p.Bottom + foot
	p.InnerHeight, p.AxisText = p.Height-1, p.Bottom+20
	for at, step := time.Duration(0), tick(span); at <= span; at += step {
		p.Ticks = append(p.Ticks, label{Text: fmt.Sprintf("%d s", int(at.Seconds())), X: x(begin.Add(at))})
	}
	for i, m := range marks {
		p.Marks = append(p.Marks, label{Text: m.text, X: x(m.at), Y: head + markHeight*(i+1), Before: m.at.Sub(begin) > span/2})
	}
	p.PodsY, p.NodesY = pods.labels(), nodes.labels()
	for _, l := range []struct {
		class, name string
		panel       panel
		value       func(state) int
	}{
		{"pods", "pods", pods, func(s state) int { return s.pods }},
		{"running", "running", pods, func(s state) int { return s.running }},
		{"nodes", "nodes", nodes, func(s state) int { return s.nodes }},
		{"ready", "ready", nodes, func(s state) int { return s.ready }},
	} {
		p.Lines = append(p.Lines, line{
			Class: l.class, Name: l.name, Points: steps(states, x, func(s state) int { return l.panel.y(l.value(s)) }),
			LegendX: left + 100*(len(p.Lines)%2), LegendY: l.panel.top - 6,
		})
	}
	return p
}

// labels are those of the axis: nothing, and the most.
func (p panel) labels() []label {
	return []label{{Text: "0", Y: p.y(0) + 4}, {Text: fmt.Sprint(p.most), Y: p.y(p.most) + 4}}
}

// steps are the points of a line that keeps its value until it changes.
func steps(states []state, x func(time.Time) string, y func(state) int) string {
	var points []string
	for i, s := range states {
		if i > 0 {
			points = append(points, fmt.Sprintf("%s,%d", x(s.at), y(states[i-1])))
		}
		points = append(points, fmt.Sprintf("%s,%d", x(s.at), y(s)))
	}
	return strings.Join(points, " ")
}

// tick is the distance of the lines of the time axis: not too many of them, at round numbers.
func tick(span time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute} {
		if span/step <= mostTicks {
			return step
		}
	}
	return 5 * time.Minute
}

// SVG writes the picture, with colours for light and dark backgrounds.
func (p picture) SVG(out io.Writer) error { return svg.Execute(out, p) }
