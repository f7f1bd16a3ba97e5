package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// slow is the latency that p99 is to stay below.
const slow = time.Second

// report has all measurements.
type report struct {
	Manifest string   `json:"manifest"`
	Clients  int      `json:"clients"`
	Objects  int      `json:"objects"`
	Bytes    int      `json:"bytes"`
	Samples  []sample `json:"samples"`
}

// sample is what is measured at the end of an interval. CPUs are numbers of processors.
type sample struct {
	// Seconds is the time since the begin, and Load whether there were requests.
	Seconds float64 `json:"seconds"`
	Load    bool    `json:"load"`
	// Rate is requests per second that got a response, Rejected those that were too many, and Failed those without a response or with an error of the server.
	Rate     float64 `json:"requestsPerSecond"`
	Rejected int     `json:"rejected"`
	Failed   int     `json:"failed"`
	P50      float64 `json:"p50Milliseconds"`
	P99      float64 `json:"p99Milliseconds"`
	// Pods of the kube-apiserver are those that are not being deleted, Ready those of them that are ready, and Desired what the HorizontalPodAutoscaler
	// wants, or 0 without one.
	Pods     int   `json:"pods"`
	Ready    int   `json:"ready"`
	Desired  int32 `json:"desired"`
	Restarts int32 `json:"restarts"`
	// SeenCPU and SeenMemory are the averages per pod that the HorizontalPodAutoscaler sees. Nil means that it has no metric.
	SeenCPU    *float64 `json:"seenCPU"`
	SeenMemory *int64   `json:"seenMemoryBytes"`
	// CPU and Memory are what all pods use.
	CPU    float64 `json:"cpu"`
	Memory int64   `json:"memoryBytes"`
	// RequestedCPU and RequestedMemory are what the container of each pod requests, the other two what the Vertical Pod Autoscaler recommends for it.
	RequestedCPU      []float64 `json:"requestedCPU"`
	RequestedMemory   []int64   `json:"requestedMemoryBytes"`
	RecommendedCPU    float64   `json:"recommendedCPU"`
	RecommendedMemory int64     `json:"recommendedMemoryBytes"`
}

// set notes the requests of an interval.
func (s *sample) set(r requests, interval time.Duration) {
	s.Rate, s.Rejected, s.Failed = float64(len(r.took))/interval.Seconds(), r.rejected, r.failed
	slices.Sort(r.took)
	s.P50, s.P99 = quantile(r.took, .5), quantile(r.took, .99)
}

// quantile is in milliseconds, and 0 without durations, which have to be sorted.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Seconds() * 1000
}

func (s sample) String() string {
	var fields []string
	for i, value := range s.row() {
		fields = append(fields, head[i]+" "+value)
	}
	return strings.Join(fields, ", ")
}

var head = []string{"after", "requests/s", "p50", "p99", "rejected/failed", "pods ready", "desired", "average seen", "used by all", "requested per pod", "recommended"}

func (s sample) row() []string {
	latency := func(ms float64) string {
		if s.Rate == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f ms", ms)
	}
	desired, seen, used, requested, recommended := "-", "no metric", "no metric", "-", "-"
	if s.Desired > 0 {
		desired = fmt.Sprint(s.Desired)
	}
	if s.SeenCPU != nil && s.SeenMemory != nil {
		seen = amount(*s.SeenCPU, *s.SeenMemory)
	}
	if s.Memory > 0 { // else the metrics API does not respond
		used = amount(s.CPU, s.Memory)
	}
	if len(s.RequestedCPU) > 0 {
		requested = amount(slices.Min(s.RequestedCPU), slices.Min(s.RequestedMemory))
		if most := amount(slices.Max(s.RequestedCPU), slices.Max(s.RequestedMemory)); most != requested {
			requested += " to " + most
		}
	}
	if s.RecommendedMemory > 0 {
		recommended = amount(s.RecommendedCPU, s.RecommendedMemory)
	}
	return []string{
		fmt.Sprintf("%.0f s", s.Seconds), fmt.Sprintf("%.0f", s.Rate), latency(s.P50), latency(s.P99), fmt.Sprintf("%d/%d", s.Rejected, s.Failed),
		fmt.Sprintf("%d of %d", s.Ready, s.Pods), desired, seen, used, requested, recommended,
	}
}

func amount(cpu float64, memory int64) string {
	return fmt.Sprintf("%.2f CPU %.0f MiB", cpu, float64(memory)/(1<<20))
}

// summary says how the samples are to be judged.
func (r *report) summary() string {
	if len(r.Samples) == 0 {
		return "Nothing was measured."
	}
	most, least, last, above, loaded, restarts := 0, r.Samples[0].Ready, r.Samples[len(r.Samples)-1], 0, 0, int32(0)
	var worst float64
	for _, s := range r.Samples {
		most, least, restarts = max(most, s.Ready), min(least, s.Ready), max(restarts, s.Restarts)
		if !s.Load {
			continue
		}
		loaded++
		worst = max(worst, s.P99)
		if s.P99 > slow.Seconds()*1000 {
			above++
		}
	}
	return fmt.Sprintf("p99 was above %s in %d of %d intervals with load, at most %.0f ms. Ready pods: %d at first, %d at least, %d at most, %d at the end; %d restarts.",
		slow, above, loaded, worst, r.Samples[0].Ready, least, most, last.Ready, restarts)
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

// write writes sentences, and a table whose first row is the head.
func write(out io.Writer, r *report, table func(io.Writer, [][]string) error) error {
	fmt.Fprintf(out, "%s, %d clients with up to %d ConfigMaps and Secrets each, of %d bytes.\n%s\n\n", r.Manifest, r.Clients, r.Objects, r.Bytes, r.summary())
	rows := [][]string{head}
	for _, s := range r.Samples {
		rows = append(rows, s.row())
	}
	return table(out, rows)
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
