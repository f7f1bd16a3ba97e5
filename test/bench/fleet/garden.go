package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/scheduler"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const (
	// creators is how many requests of users are sent at the same time.
	creators = 16
	// stepTimeout ends a step that hangs.
	stepTimeout = 20 * time.Minute
	// profileTime is how long CPU profiles take.
	profileTime = 15 * time.Second
	// stepSettle is the step after the creation of Shoots.
	stepSettle = "settle"
	// simulation is this process with the simulated gardenlets in reports.
	simulation = "simulation"
)

// garden is a running garden with its processes.
type garden struct {
	*env.Env
	options   options
	size      size
	dir       string
	latencies *latencies
	fleet     *fleet
	// processes are in the order of the report, and pids are by their names. profiles are the URLs of their profiles.
	processes []string
	pids      map[string]int
	profiles  map[string]string
	last      map[string]procfs.ProcStat
	stop      []func()
	progress  io.Writer
}

// measure measures a garden of a size.
func measure(ctx context.Context, o options, s size, progress io.Writer) (r result, err error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the directory for temporary files
	g := &garden{
		options: o, size: s, dir: dir, progress: progress, latencies: &latencies{}, fleet: &fleet{changed: make(chan struct{}, 1)},
		pids: map[string]int{simulation: os.Getpid()}, profiles: map[string]string{},
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if g.last, err = g.stats(simulation); err != nil { // the other processes are new
		return r, err
	}
	if err := g.start(ctx); err != nil {
		return r, err
	}
	r.Size = s
	for _, step := range []struct {
		name string
		run  func(context.Context) error
		// profile is for steps that last longer than a profile takes.
		profile bool
	}{
		{"start", g.createBase, false},
		{"seeds", g.createSeeds, false},
		{"projects", g.createProjects, false},
		{"create shoots", g.createShoots, false},
		{stepSettle, g.settle, true},
		{"calm, first half", g.calm, true},
		{"calm, second half", g.calm, false},
	} {
		measured, err := g.step(ctx, step.name, step.run, step.profile)
		if err != nil {
			return r, fmt.Errorf("%s: %w", step.name, err)
		}
		r.Steps = append(r.Steps, measured)
	}
	r.Failed = g.fleet.failed.Load()
	if last := g.fleet.lastError.Load(); last != nil {
		fmt.Fprintf(progress, "%d passes of gardenlets failed and were repeated, such as: %v\n", r.Failed, *last)
	}
	return r, nil
}

// start starts all processes.
func (g *garden) start(ctx context.Context) (err error) {
	// The clients of gardenlets use protobuf.
	for _, add := range []func() error{
		func() error { return apiutil.AddToProtobufScheme(corev1beta1.AddToScheme) },
		func() error { return apiutil.AddToProtobufScheme(securityv1alpha1.AddToScheme) },
		func() error { return apiutil.AddToProtobufScheme(seedmanagementv1alpha1.AddToScheme) },
		func() error { return apiutil.AddToProtobufScheme(operationsv1alpha1.AddToScheme) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	logs := io.Discard
	if g.options.verbose {
		logs = g.progress
	}
	free, err := ports.Find(5)
	if err != nil {
		return err
	}
	g.Env, err = env.New(ctx, logs, env.Binary(g.options.binary), env.WithAdmissionController(func(c *admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration) {
		c.Server.Metrics = &admissioncontrollerconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[4]}
		c.Debugging = &componentbaseconfigv1alpha1.DebuggingConfiguration{EnableProfiling: new(true)}
	}))
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(g.dir, "kubeconfig")
	if err := g.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	server := func(i int) string {
		return fmt.Sprintf("leaderElection: {leaderElect: false}\nserver:\n  healthProbes: {bindAddress: 127.0.0.1, port: %d}\n"+
			"  metrics: {bindAddress: 127.0.0.1, port: %d}\ndebugging: {enableProfiling: true}\n",
			free[i], free[i+1])
	}
	// A limit of requests would hide what the processes can do.
	err = errors.Join(
		g.exec(ctx, logs, controllermanager.Name, fmt.Sprintf("apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n"+
			"gardenClientConnection: {kubeconfig: %q, qps: -1}\n", kubeconfig)+server(0)),
		g.exec(ctx, logs, scheduler.Name, fmt.Sprintf("apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"+
			"clientConnection: {kubeconfig: %q, qps: -1}\n", kubeconfig)+server(2)),
	)
	local := func(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", free[i]) }
	g.profiles = map[string]string{
		env.KubeAPIServer: g.Config.Host, env.GardenerAPIServer: g.Direct.Host,
		controllermanager.Name: local(1), scheduler.Name: local(3), env.AdmissionController: local(4),
	}
	for _, name := range []string{env.Etcd, env.KubeAPIServer, env.GardenerAPIServer, env.AdmissionController} {
		g.pids[name] = g.PID(name)
	}
	g.processes = []string{
		env.Etcd, env.KubeAPIServer, env.GardenerAPIServer, controllermanager.Name, scheduler.Name, env.AdmissionController, simulation,
	}
	return err
}

// exec starts a process of the garden.
func (g *garden) exec(ctx context.Context, logs io.Writer, name, config string) error {
	file := filepath.Join(g.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, g.options.binary, name, "--config="+file)
	cmd.Stdout, cmd.Stderr = logs, logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	g.pids[name] = cmd.Process.Pid
	g.stop = append(g.stop, func() {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
	})
	return nil
}

func (g *garden) close() error {
	for _, stop := range g.stop {
		stop()
	}
	if g.Env == nil {
		return nil
	}
	return g.Stop()
}

// step runs a part of the measurement, and returns what it took.
func (g *garden) step(ctx context.Context, name string, run func(context.Context) error, profile bool) (step, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	fmt.Fprintf(g.progress, "%d seeds, %d shoots: %s\n", g.size.Seeds, g.size.Shoots, name)
	profiled := func() error { return nil }
	if profile && g.options.profiles != "" {
		profiled = g.profile(ctx, name)
	}
	start := time.Now()
	if err := run(ctx); err != nil {
		return step{}, err
	}
	s := step{Name: name, Seconds: time.Since(start).Seconds(), Latencies: g.latencies.cut(), Processes: map[string]usage{}}
	current, err := g.stats(g.processes...)
	if err != nil {
		return step{}, err
	}
	for process, stat := range current {
		used := stat.CPUTime()
		if before, known := g.last[process]; known {
			used -= before.CPUTime()
		}
		s.Processes[process] = usage{RSS: float64(stat.ResidentMemory()) / (1 << 20), CPU: used}
	}
	g.last = current
	return s, profiled()
}

// stats reads what the kernel knows of processes.
func (g *garden) stats(processes ...string) (map[string]procfs.ProcStat, error) {
	stats := map[string]procfs.ProcStat{}
	for _, process := range processes {
		p, err := procfs.NewProc(g.pids[process])
		if err == nil {
			stats[process], err = p.Stat()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", process, err)
		}
	}
	return stats, nil
}

// createBase creates what seeds and shoots refer to.
func (g *garden) createBase(ctx context.Context) error {
	for _, object := range base(g.Webhooks()) {
		if err := g.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// createSeeds starts the gardenlets, and waits until all watch.
func (g *garden) createSeeds(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = append([]func(){cancel}, g.stop...) // before the garden stops
	return parallel(g.size.Seeds, func(i int) error { return g.startGardenlet(running, fmt.Sprintf("seed-%04d", i)) })
}

// createProjects creates the projects with their credentials when the gardener-controller-manager has created their namespaces.
func (g *garden) createProjects(ctx context.Context) error {
	user, err := g.user()
	if err != nil {
		return err
	}
	n := g.size.projects()
	if err := parallel(n, func(i int) error { return user.Create(ctx, project(i)) }); err != nil {
		return err
	}
	err = kube.Await(ctx, user, &corev1beta1.ProjectList{}, func(projects []*corev1beta1.Project) error {
		ready := 0
		for _, p := range projects {
			if p.Status.Phase == corev1beta1.ProjectReady {
				ready++
			}
		}
		if ready < n {
			return fmt.Errorf("%d of %d projects are ready", ready, n)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return parallel(n, func(i int) error {
		for _, object := range credentials(i) {
			if err := user.Create(ctx, object); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *garden) createShoots(ctx context.Context) error {
	user, err := g.user()
	if err != nil {
		return err
	}
	return parallel(g.size.Shoots, func(i int) error { return user.Create(ctx, shoot(i, g.size)) })
}

// user returns a client whose requests are measured.
func (g *garden) user() (client.WithWatch, error) {
	return client.NewWithWatch(g.latencies.measured(g.Config), client.Options{Scheme: g.Scheme, Mapper: g.Client.RESTMapper()})
}

// settle waits until all shoots are scheduled and reported as created, and all seeds as ready.
func (g *garden) settle(ctx context.Context) error {
	for {
		seeds, shoots := int(g.fleet.seedsReady.Load()), int(g.fleet.succeeded.Load())
		if seeds == g.size.Seeds && shoots == g.size.Shoots {
			return nil
		}
		select {
		case <-g.fleet.changed:
		case <-ctx.Done():
			err := fmt.Errorf("%d of %d seeds are ready, %d of %d shoots are created", seeds, g.size.Seeds, shoots, g.size.Shoots)
			if last := g.fleet.lastError.Load(); last != nil {
				err = errors.Join(err, *last)
			}
			return errors.Join(err, ctx.Err())
		}
	}
}

// calm lets half of the calm phase pass.
func (g *garden) calm(ctx context.Context) error {
	select {
	case <-time.After(g.options.calm / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// profile begins to fetch CPU profiles of the processes, and returns a function that waits for them and fetches heap profiles.
func (g *garden) profile(ctx context.Context, step string) func() error {
	fetchAll := func(path, suffix string) error {
		var group sync.WaitGroup
		errs := make([]error, len(g.processes))
		for i, process := range g.processes {
			url, ok := g.profiles[process]
			if !ok {
				continue
			}
			name := fmt.Sprintf("%d-%s-%s.%s", g.size.Shoots, strings.NewReplacer(" ", "-", ",", "").Replace(step), process, suffix)
			group.Go(func() { errs[i] = g.fetch(ctx, url+path, filepath.Join(g.options.profiles, name)) })
		}
		group.Wait()
		return errors.Join(errs...)
	}
	done := make(chan error, 1)
	go func() {
		done <- fetchAll(fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profileTime.Seconds())), "cpu")
	}()
	return func() error { return errors.Join(<-done, fetchAll("/debug/pprof/heap", "heap")) }
}

// fetch writes a response to a file.
func (g *garden) fetch(ctx context.Context, url, file string) error {
	tlsConfig, err := rest.TLSConfigFor(g.Config)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // for the user
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}

// parallel calls a function with the numbers below n.
func parallel(n int, do func(int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, creators)
	for c := range creators {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[c] == nil; i = int(next.Add(1)) - 1 {
				errs[c] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
