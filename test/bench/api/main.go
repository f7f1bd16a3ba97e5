// Command api measures the garden API: latencies, rates, and the CPU time and memory of its servers.
//
// It starts a garden of its own, sends requests through the aggregator as 16 clients with a connection each, and reads
// the usage of the servers from /proc. Rates depend on what else the machine does; CPU time per request hardly does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"gardener.cloud/gardener/test/env"
)

type options struct {
	binary, output, profiles string
	shoots, bindings         int
	lists, watchers, changes int
	clients                  int
	settle                   time.Duration
	flags                    repeated
	verbose                  bool
}

// repeated is a flag that can be given more than once.
type repeated []string

func (r *repeated) String() string         { return strings.Join(*r, " ") }
func (r *repeated) Set(value string) error { *r = append(*r, value); return nil }

func main() {
	o := options{}
	flag.StringVar(&o.binary, "binary", "bin/gardener", "the binary with gardener-apiserver")
	flag.StringVar(&o.output, "o", "table", "table or json")
	flag.StringVar(&o.profiles, "profiles", "", "directory for a CPU and a heap profile of gardener-apiserver per step; costs some time")
	flag.IntVar(&o.shoots, "shoots", 2000, "how many Shoots to create")
	flag.IntVar(&o.bindings, "bindings", 200, "how many CredentialsBindings to create")
	flag.IntVar(&o.lists, "lists", 20, "how often to list all Shoots")
	flag.IntVar(&o.watchers, "watchers", 100, "how many watches to open")
	flag.IntVar(&o.changes, "changes", 200, "how many changes the watches see")
	flag.IntVar(&o.clients, "clients", 16, "how many clients, with a connection each")
	flag.DurationVar(&o.settle, "settle", 15*time.Second, "how long the servers are idle before the idle memory is measured")
	flag.Var(&o.flags, "flag", "a flag for gardener-apiserver; can be repeated")
	flag.BoolVar(&o.verbose, "v", false, "print the logs of the servers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("unknown output %q; use -o table or -o json", o.output)
	}
	if _, err := os.Stat(o.binary); err != nil {
		return fmt.Errorf("%w; build it with: make build", err)
	}
	logs := io.Discard
	if o.verbose {
		logs = progress
	}
	e, err := env.New(ctx, logs, env.Binary(o.binary), env.Flags(o.flags...))
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := e.Stop(); err == nil {
			err = stopErr
		}
	}()
	b, err := newBench(e, o, progress)
	if err != nil {
		return err
	}
	if err := b.measure(ctx); err != nil {
		return err
	}
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(b.report)
	}
	return b.report.print(out)
}

// report has all measurements.
type report struct {
	Machine machine  `json:"machine"`
	Steps   []step   `json:"steps"`
	Memory  []memory `json:"memory"`
}

// machine is the machine of the measurement.
type machine struct {
	CPU  string  `json:"cpu"`
	CPUs int     `json:"cpus"`
	Load float64 `json:"load"` // of the minute before the start
}

// step is one kind of request.
type step struct {
	Name     string  `json:"name"`
	Requests int     `json:"requests"` // for the watch: events that were received
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"perSecond"`
	// Milliseconds from the request to the end of the response; for the watch, to the event.
	P50 float64 `json:"p50Milliseconds"`
	P99 float64 `json:"p99Milliseconds"`
	// Bytes is the mean size of a response.
	Bytes int `json:"bytes"`
	// CPU is milliseconds per request, by server.
	CPU map[string]float64 `json:"cpuMilliseconds"`
}

// memory is the memory of gardener-apiserver and the size of the database at a moment.
type memory struct {
	When     string  `json:"when"`
	RSS      float64 `json:"rssMegabytes"`
	PSS      float64 `json:"pssMegabytes"`
	Own      float64 `json:"ownMegabytes"` // without pages of the binary
	Database float64 `json:"databaseMegabytes"`
}

var programs = []string{env.GardenerAPIServer, env.KubeAPIServer, env.Etcd}

func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%d x %s, load %.1f before\n\n", r.Machine.CPUs, r.Machine.CPU, r.Machine.Load)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "step\trequests\tper second\tp50 ms\tp99 ms\tbytes\tms CPU: "+strings.Join(programs, "\t")+"\t")
	for _, s := range r.Steps {
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.1f\t%.1f\t%d\t", s.Name, s.Requests, s.Rate, s.P50, s.P99, s.Bytes)
		for _, program := range programs {
			fmt.Fprintf(table, "%.2f\t", s.CPU[program])
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(table, env.GardenerAPIServer+"\tRSS MB\tPSS MB\town MB\tdatabase MB\t")
	for _, m := range r.Memory {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t\n", m.When, m.RSS, m.PSS, m.Own, m.Database)
	}
	return table.Flush()
}
