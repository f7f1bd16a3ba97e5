package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report has all measurements.
type report struct {
	Machine machine  `json:"machine"`
	Runs    []result `json:"runs"`
	// Growth compares the second run with the first one.
	Growth []factor `json:"growth,omitempty"`
}

// machine is the machine of the measurement.
type machine struct {
	CPUs int     `json:"cpus"`
	Load float64 `json:"load"` // of the minute before the start
}

// result is the measurement of a garden of one size.
type result struct {
	Size  size   `json:"size"`
	Steps []step `json:"steps"`
	// Failed is how often a simulated gardenlet had to repeat something.
	Failed int64 `json:"failed"`
}

// step is a part of a measurement.
type step struct {
	Name      string             `json:"name"`
	Seconds   float64            `json:"seconds"`
	Processes map[string]usage   `json:"processes"`
	Latencies map[string]latency `json:"latencies,omitempty"`
}

// usage is what a process used in a step.
type usage struct {
	RSS float64 `json:"rssMebibytes"` // at the end
	CPU float64 `json:"cpuSeconds"`
}

// factor is by how much a figure is greater in a garden that is larger.
type factor struct {
	Figure string  `json:"figure"`
	Small  float64 `json:"small"`
	Large  float64 `json:"large"`
	Factor float64 `json:"factor"`
	// Faster says that it grows faster than the number of seeds and shoots.
	Faster bool `json:"faster,omitempty"`
}

const (
	// noise is by which part a figure may grow faster than the input without being marked: measurements differ by that much.
	noise = 0.15
	// negligible is the figure, in seconds or milliseconds, below which a factor says nothing.
	negligible = 0.2
)

// growth compares the figures of two gardens.
func growth(small, large result) []factor {
	input := float64(large.Size.Shoots) / float64(small.Size.Shoots)
	var out []factor
	add := func(figure string, a, b float64) {
		if b < negligible {
			return
		}
		f := factor{Figure: figure, Small: a, Large: b, Factor: b / max(a, negligible/input)}
		f.Faster = f.Factor > input*(1+noise)
		out = append(out, f)
	}
	largeSteps, smallSteps := joined(large.Steps), joined(small.Steps)
	for i, after := range largeSteps {
		before := smallSteps[i]
		add(after.Name+": seconds", before.Seconds, after.Seconds)
		for _, process := range slices.Sorted(maps.Keys(after.Processes)) {
			add(after.Name+": CPU seconds of "+process, before.Processes[process].CPU, after.Processes[process].CPU)
			add(after.Name+": MiB of "+process, before.Processes[process].RSS, after.Processes[process].RSS)
		}
		for _, request := range slices.Sorted(maps.Keys(after.Latencies)) {
			was, ok := before.Latencies[request]
			if !ok {
				continue
			}
			is := after.Latencies[request]
			add(after.Name+": requests "+request, float64(was.Requests), float64(is.Requests))
			add(after.Name+": p50 ms "+request, was.P50, is.P50)
			add(after.Name+": p99 ms "+request, was.P99, is.P99)
		}
	}
	return out
}

// joined returns steps with the creation of Shoots and what follows it as one: the more Shoots there are, the more of the latter happens while
// others are still created. Of latencies, it has the higher one.
func joined(steps []step) []step {
	var out []step
	for _, s := range steps {
		if s.Name != stepSettle || len(out) == 0 {
			out = append(out, s)
			continue
		}
		before := out[len(out)-1]
		all := step{
			Name: before.Name + " and " + s.Name, Seconds: before.Seconds + s.Seconds,
			Processes: map[string]usage{}, Latencies: maps.Clone(before.Latencies),
		}
		for name, u := range s.Processes {
			all.Processes[name] = usage{RSS: u.RSS, CPU: before.Processes[name].CPU + u.CPU}
		}
		for request, l := range s.Latencies {
			was := before.Latencies[request]
			all.Latencies[request] = latency{Requests: was.Requests + l.Requests, P50: max(was.P50, l.P50), P99: max(was.P99, l.P99)}
		}
		out[len(out)-1] = all
	}
	return out
}

func (r report) print(out io.Writer) error {
	fmt.Fprintf(out, "%d processors, load %.1f before\n", r.Machine.CPUs, r.Machine.Load)
	for _, run := range r.Runs {
		if err := run.print(out); err != nil {
			return err
		}
	}
	if len(r.Growth) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nWhat grows by more than a third of the input; ! marks what grows faster than it:")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	input := float64(r.Runs[1].Size.Shoots) / float64(r.Runs[0].Size.Shoots)
	for _, f := range slices.SortedFunc(slices.Values(r.Growth), func(a, b factor) int { return cmp.Compare(b.Factor, a.Factor) }) {
		if f.Factor < input/3 {
			continue
		}
		mark := ""
		if f.Faster {
			mark = "!"
		}
		fmt.Fprintf(table, "%.1f\t%s\t%s\t%.2f\t%.2f\n", f.Factor, mark, f.Figure, f.Small, f.Large)
	}
	return table.Flush()
}

func (r result) print(out io.Writer) error {
	fmt.Fprintf(out, "\n%d seeds, %d shoots; %d passes of gardenlets were repeated\n", r.Size.Seeds, r.Size.Shoots, r.Failed)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	processes := slices.Sorted(maps.Keys(r.Steps[0].Processes))
	fmt.Fprintln(table, "CPU s, MiB\tseconds\t"+strings.Join(processes, "\t")+"\t")
	for _, s := range r.Steps {
		fmt.Fprintf(table, "%s\t%.1f\t", s.Name, s.Seconds)
		for _, p := range processes {
			fmt.Fprintf(table, "%.1f, %.0f\t", s.Processes[p].CPU, s.Processes[p].RSS)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(table, "request\trequests\tp50 ms\tp99 ms\t")
	for _, s := range r.Steps {
		for _, request := range slices.Sorted(maps.Keys(s.Latencies)) {
			l := s.Latencies[request]
			fmt.Fprintf(table, "%s: %s\t%d\t%.1f\t%.1f\t\n", s.Name, request, l.Requests, l.P50, l.P99)
		}
	}
	return table.Flush()
}

// thisMachine describes the machine it runs on.
func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU()}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _ = strconv.ParseFloat(strings.Fields(string(data))[0], 64) // zero if it cannot be read
	}
	return m
}
