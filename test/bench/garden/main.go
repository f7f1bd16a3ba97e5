// Command garden measures the gardener-controller-manager: how soon new projects are ready, and how much time and memory it needs for many
// shoots.
//
// Each scenario has a garden of its own, in a process of its own. CPU time and memory of the controller-manager are read from /proc.
// Durations depend on the load of the machine; CPU time hardly does.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

type options struct {
	binary, output, scenario, profiles string
	projects, shoots, spread           int
	verbose                            bool
}

// result is the measurement of a step.
type result struct {
	Scenario string  `json:"scenario"`
	Step     string  `json:"step"`
	Seconds  float64 `json:"seconds"`
	// CPUSeconds is the CPU time of the controller-manager since its start.
	CPUSeconds float64 `json:"cpuSeconds"`
	// MemoryMiB is its resident memory at the end, and PeakMiB the highest value since its start.
	MemoryMiB float64 `json:"memoryMiB"`
	PeakMiB   float64 `json:"peakMiB"`
	// Writes is the number of its requests that are not reads.
	Writes int `json:"writes"`
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/gardener", "the binary with gardener-controller-manager")
	flag.StringVar(&o.output, "o", "table", "table or json")
	flag.StringVar(&o.scenario, "scenario", "", "the only scenario to run: "+strings.Join(scenarioNames(), ", "))
	flag.StringVar(&o.profiles, "profiles", "", "directory for CPU profiles of the controller-manager")
	flag.IntVar(&o.projects, "projects", 500, "how many projects to create at once")
	flag.IntVar(&o.shoots, "shoots", 5000, "how many shoots to create")
	flag.IntVar(&o.spread, "spread", 50, "over how many projects they are spread in the scenario with several")
	flag.BoolVar(&o.verbose, "v", false, "print the log of the controller-manager")
	flag.Parse()
	// gardener-apiserver runs in this process.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("unknown output %q; use -o table or -o json", o.output)
	}
	if _, err := os.Stat(o.binary); err != nil {
		return fmt.Errorf("%w; build it with: make build", err)
	}
	var results []result
	var err error
	if o.scenario != "" {
		results, err = measure(ctx, o, progress)
	} else {
		results, err = measureAll(ctx, progress)
	}
	if err != nil {
		return err
	}
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scenario\tstep\tseconds\tCPU seconds\tMiB\tpeak MiB\twrites\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%.2f\t%.0f\t%.0f\t%d\t\n", r.Scenario, r.Step, r.Seconds, r.CPUSeconds, r.MemoryMiB, r.PeakMiB, r.Writes)
	}
	return table.Flush()
}

// measureAll runs every scenario in a process of its own: there is one garden per process.
func measureAll(ctx context.Context, progress io.Writer) ([]result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []result
	for _, name := range scenarioNames() {
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, self, append(slices.Clone(os.Args[1:]), "-o=json", "-scenario="+name)...)
		cmd.Stdout, cmd.Stderr = &output, progress
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", name, err)
		}
		var results []result
		if err := json.Unmarshal(output.Bytes(), &results); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", name, err)
		}
		all = append(all, results...)
	}
	return all, nil
}

// usage reads CPU time and memory of a process from /proc.
func usage(pid int, r *result) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	// The name of the command, in parentheses, may have spaces in it. After it, utime and stime are the 12th and 13th field.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return err
		}
		r.CPUSeconds += ticks / 100 // the kernel's USER_HZ
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		target := map[string]*float64{"VmRSS": &r.MemoryMiB, "VmHWM": &r.PeakMiB}[name]
		if target == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			return err
		}
		*target = kib / 1024
	}
	return nil
}
