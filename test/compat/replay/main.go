// Command replay sends the recorded requests to a fresh garden and prints, per kind, how many answers agree with those of the
// original project.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/facts"
)

// disagreement is the exit status of the replay if an answer differs.
const disagreement = 1

type options struct {
	kind, show   string
	least, exact float64
	verbose      bool
}

func main() {
	o := options{}
	flag.StringVar(&o.kind, "kind", "", "the only kind to replay")
	flag.StringVar(&o.show, "show", "0", "how many differences to print")
	flag.Float64Var(&o.least, "least", 0, "fail if fewer percent of the requests are accepted or refused alike")
	flag.Float64Var(&o.exact, "exact", 0, "fail if fewer percent of the answers are exactly the same")
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
	dir, err := facts.Find()
	if err != nil {
		return err
	}
	logs := io.Discard
	if o.verbose {
		logs = progress
	}
	e, err := env.New(ctx, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	cert, key := e.AdminFiles()
	args := []string{
		filepath.Join(dir, "tools", "corpus_replay.py"), "--server", e.Config.Host, "--cert", cert, "--key", key,
		"--prerequisites", filepath.Join(dir, "corpus", "bases", "prerequisites"),
		"--corpus", filepath.Join(dir, "corpus", "requests.jsonl.gz"), "--show", o.show,
	}
	if o.kind != "" {
		args = append(args, "--kind", o.kind)
	}
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, "python3", args...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, &printed), progress
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == disagreement) {
		return fmt.Errorf("replay (it needs python3 with PyYAML): %w", err)
	}
	return atLeast(printed.Bytes(), o.least, o.exact)
}

// total is the last line that the replay prints: requests, the percentage of equal verdicts, that of equal answers.
var total = regexp.MustCompile(`(?m)^total\s+(\d+)\s+([\d.]+)%\s+([\d.]+)%`)

func atLeast(printed []byte, verdicts, answers float64) error {
	found := total.FindSubmatch(printed)
	if found == nil || string(found[1]) == "0" {
		return errors.New("nothing was replayed")
	}
	check := func(percent []byte, least float64, what string) error {
		got, err := strconv.ParseFloat(string(percent), 64)
		if err == nil && got < least {
			err = fmt.Errorf("%.2f %% of the requests are %s, less than %.2f %%", got, what, least)
		}
		return err
	}
	return errors.Join(check(found[2], verdicts, "accepted or refused alike"), check(found[3], answers, "answered exactly alike"))
}
