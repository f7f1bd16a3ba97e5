package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"gardener.cloud/gardener/landscape"
)

// report has all measurements.
type report struct {
	Computer computer `json:"computer"`
	Manifest string   `json:"manifest"`
	AtOnce   int      `json:"atOnce"`
	Rounds   int      `json:"rounds"`
	// Shoots counts all created shoots, Unhealthy those that did not become healthy in time, and Failures are the tasks that failed once
	// or more meanwhile, with the last error of each.
	Shoots    int      `json:"shoots"`
	Unhealthy int      `json:"unhealthy"`
	Failures  []string `json:"failures,omitempty"`
	Times     []timing `json:"times"`
	// ControlPlane and Node are the sums over all control planes and nodes at the end of the last round.
	ControlPlanes int                        `json:"controlPlanes"`
	ControlPlane  []landscape.ComponentUsage `json:"controlPlane"`
	Nodes         int                        `json:"nodes"`
	Node          []landscape.ComponentUsage `json:"node,omitempty"`
}

// timing is the times from creation to an event.
type timing struct {
	What    string    `json:"what"`
	Seconds []float64 `json:"seconds"`
}

// note adds a time to those of an event. Zero is ignored.
func (r *report) note(what string, took time.Duration) {
	if took == 0 {
		return
	}
	index := slices.IndexFunc(r.Times, func(t timing) bool { return t.What == what })
	if index < 0 {
		index = len(r.Times)
		r.Times = append(r.Times, timing{What: what})
	}
	r.Times[index].Seconds = append(r.Times[index].Seconds, took.Seconds())
}

// add adds the shoots of a round.
func (r *report) add(creations []*creation) {
	for _, c := range creations {
		r.Shoots++
		r.note("scheduled", c.scheduled)
		r.note("first API response", c.answer)
		r.note("first node ready", c.node)
		r.note("healthy", c.healthy)
		r.note("deleted, after the request", c.gone)
		if c.healthy == 0 {
			r.Unhealthy++
		}
		for _, task := range slices.Sorted(maps.Keys(c.failed)) {
			r.Failures = append(r.Failures, fmt.Sprintf("shoot %q: %s", c.shoot.Name, c.failed[task]))
		}
	}
}

// allHealthy adds the time until the last of some shoots was healthy, if they all are.
func (r *report) allHealthy(creations []*creation, took time.Duration) {
	if len(creations) > 1 && !slices.ContainsFunc(creations, func(c *creation) bool { return c.healthy == 0 }) {
		r.note(fmt.Sprintf("all %d healthy", len(creations)), took)
	}
}

var formats = map[string]func(io.Writer, *report) error{
	"text":     func(out io.Writer, r *report) error { return write(out, r, textTable) },
	"markdown": func(out io.Writer, r *report) error { return write(out, r, markdownTable) },
	"json": func(out io.Writer, r *report) error {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	},
}

// write writes the report as text: sentences, and tables whose first row is the head.
func write(out io.Writer, r *report, table func(io.Writer, [][]string) error) error {
	rounds := "once"
	if r.Rounds > 1 {
		rounds = fmt.Sprintf("%d times in a row", r.Rounds)
	}
	fmt.Fprintf(out, "%s, %d at once, %s, on %s.\n", r.Manifest, r.AtOnce, rounds, r.Computer)
	fmt.Fprintf(out, "%d of %d shoots became healthy, %d tasks failed meanwhile.\n\n", r.Shoots-r.Unhealthy, r.Shoots, len(r.Failures))
	for _, failure := range r.Failures {
		fmt.Fprintf(out, "- %s\n", strings.Join(strings.Fields(failure), " "))
	}
	if len(r.Failures) > 0 {
		fmt.Fprintln(out)
	}
	tables := [][][]string{timesTable(r.Times)}
	if len(r.ControlPlane) > 0 {
		tables = append(tables, usageTable("control plane", r.ControlPlane, r.ControlPlanes))
	}
	if len(r.Node) > 0 {
		tables = append(tables, usageTable("node", r.Node, r.Nodes))
	}
	for i, rows := range tables {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := table(out, rows); err != nil {
			return err
		}
	}
	return nil
}

func timesTable(times []timing) [][]string {
	rows := [][]string{{"after the creation", "median", "best", "worst", "of"}}
	for _, t := range times {
		all := slices.Sorted(slices.Values(t.Seconds))
		rows = append(rows, []string{
			t.What, seconds(all[len(all)/2]), seconds(all[0]), seconds(all[len(all)-1]), fmt.Sprint(len(all)),
		})
	}
	return rows
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

// usageTable has a row per component, and their sum. For several control planes or nodes it also has the mean.
func usageTable(of string, components []landscape.ComponentUsage, count int) [][]string {
	title := "component of a " + of
	if count > 1 {
		title = fmt.Sprintf("component of %d %ss", count, of)
	}
	rows := [][]string{{title, "how many", "memory (PSS)", "CPU since start"}}
	row := func(used landscape.ComponentUsage, number string) {
		rows = append(rows, []string{
			used.Component, number, fmt.Sprintf("%.0f MiB", float64(used.Proportional)/(1<<20)), seconds(used.Processor),
		})
	}
	total := landscape.ComponentUsage{}
	for _, used := range components {
		row(used, fmt.Sprint(used.Pods))
		total = sum(total, used)
	}
	total.Component = "total"
	row(total, fmt.Sprint(total.Pods))
	if count > 1 {
		row(landscape.ComponentUsage{
			Component: "per " + of, Proportional: total.Proportional / int64(count), Processor: total.Processor / float64(count),
		}, fmt.Sprintf("%.1f", float64(total.Pods)/float64(count)))
	}
	return rows
}

func textTable(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	return w.Flush()
}

func markdownTable(out io.Writer, rows [][]string) error {
	for i, row := range rows {
		if _, err := fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return err
		}
		if i == 0 {
			if _, err := fmt.Fprintln(out, strings.Repeat("|---", len(row))+"|"); err != nil {
				return err
			}
		}
	}
	return nil
}
