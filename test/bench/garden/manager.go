package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// scrapeInterval is the shortest interval at which the metrics of a controller-manager are read to find out whether it is busy. A scrape
	// costs it some milliseconds of CPU time, so the interval grows with the time since its start, to a twentieth of it.
	scrapeInterval = time.Second
	// quietFor is how long it must not have been busy to count as settled.
	quietFor = 2 * time.Second
	// settleWithin is more than any scenario takes.
	settleWithin = 10 * time.Minute
)

// manager is a running controller-manager.
type manager struct {
	cmd             *exec.Cmd
	health, metrics string
	profiles        string
	scenario        string
}

// start starts a controller-manager with a limit of requests per second.
func (b *bench) start(ctx context.Context, qps int) (*manager, error) {
	kubeconfig := filepath.Join(b.dir, "kubeconfig")
	if err := b.WriteKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`apiVersion: controllermanager.config.gardener.cloud/v1alpha1
kind: ControllerManagerConfiguration
gardenClientConnection: {kubeconfig: %q, qps: %d, burst: %d}
leaderElection: {leaderElect: false}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
debugging: {enableProfiling: true}
`, kubeconfig, qps, 2*qps, ports[0], ports[1])
	file := filepath.Join(b.dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.binary, "gardener-controller-manager", "--config="+file)
	if b.verbose {
		cmd.Stdout, cmd.Stderr = b.progress, b.progress
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &manager{
		cmd: cmd, health: fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[0]), metrics: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		profiles: b.profiles, scenario: b.scenario,
	}, nil
}

func (m *manager) stop() {
	_ = m.cmd.Process.Kill() // it may have exited already
	_ = m.cmd.Wait()
}

// settle waits until the caches are synced and the controllers are not busy, and returns since when.
func (m *manager) settle(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	var since time.Time
	for started := time.Now(); ; {
		busy := 1.0
		if _, err := get(ctx, m.health); err == nil { // otherwise it is still starting
			if busy, err = m.sum(ctx, "workqueue_depth", "controller_runtime_active_workers"); err != nil {
				return time.Time{}, err
			}
		}
		switch {
		case busy > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > quietFor:
			return since, nil
		}
		select {
		case <-time.After(max(scrapeInterval, time.Since(started)/20)):
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// sum adds up metrics.
func (m *manager) sum(ctx context.Context, names ...string) (float64, error) {
	text, err := get(ctx, m.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		for _, name := range names {
			labels, ok := strings.CutPrefix(line, name+"{")
			if !ok {
				continue
			}
			value, err := strconv.ParseFloat(strings.TrimSpace(labels[strings.LastIndex(labels, "}")+1:]), 64)
			if err != nil {
				return 0, err
			}
			sum += value
		}
	}
	return sum, nil
}

// writes returns the number of its requests that are not reads.
func (m *manager) writes(ctx context.Context) (int, error) {
	text, err := get(ctx, m.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "rest_client_requests_total{") || strings.Contains(line, `method="GET"`) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, "}")+1:]), 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return int(sum), nil
}

// profile writes a heap profile, if there is a directory for profiles.
func (m *manager) profile(ctx context.Context, step string) error {
	if m.profiles == "" {
		return nil
	}
	data, err := get(ctx, m.metrics+"/debug/pprof/allocs")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.profiles, m.scenario+"-"+strings.ReplaceAll(step, " ", "-")+".pprof"), data, 0o600)
}

func (b *bench) report(m *manager, step string, took time.Duration) error {
	r := result{Scenario: b.scenario, Step: step, Seconds: took.Seconds()}
	if err := usage(m.cmd.Process.Pid, &r); err != nil {
		return err
	}
	writes, err := m.writes(context.Background())
	r.Writes = writes
	b.results = append(b.results, r)
	return err
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // compression would use CPU time of the process that is measured
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return body.Bytes(), nil
}

// freePorts returns free ports of the loopback interface.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // kept open until all are found, so that they differ
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
