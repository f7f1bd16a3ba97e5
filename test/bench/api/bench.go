package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/test/env"
)

const (
	collection = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-bench/shoots"
	bindings   = "/apis/security.gardener.cloud/v1alpha1/namespaces/garden-bench/credentialsbindings"

	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	mergePatch = "application/merge-patch+json"

	// stepTimeout ends a step that hangs; the longest takes half a minute on a busy machine.
	stepTimeout = 5 * time.Minute
	// profileTime is shorter than any step that is worth a profile.
	profileTime = 4 * time.Second
)

//go:embed objects
var objects embed.FS

// bench sends requests to a garden and measures them.
type bench struct {
	env      *env.Env
	options  options
	clients  []*http.Client
	direct   *http.Client
	progress io.Writer
	report   report
}

func newBench(e *env.Env, o options, progress io.Writer) (*bench, error) {
	b := &bench{env: e, options: o, progress: progress, report: report{Machine: thisMachine()}}
	tlsConfig, err := rest.TLSConfigFor(e.Config)
	if err != nil {
		return nil, err
	}
	for range o.clients {
		b.clients = append(b.clients, newClient(tlsConfig))
	}
	b.direct = newClient(tlsConfig)
	return b, nil
}

// newClient returns a client with a connection of its own.
func newClient(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}}
}

// request is what a client sends.
type request struct {
	method, path, contentType, accept string
	body                              []byte
}

// send sends a request and returns the size of the response.
func (b *bench) send(ctx context.Context, client *http.Client, r request) (int64, error) {
	response, err := b.open(ctx, client, r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// open sends a request and returns the response, whose body is still to be read.
func (b *bench) open(ctx context.Context, client *http.Client, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, b.env.Config.Host+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", r.accept)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	response, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		return nil, fmt.Errorf("%s %s: %s: %s", r.method, r.path, response.Status, body)
	}
	return response, nil
}

// measure runs all steps.
func (b *bench) measure(ctx context.Context) error {
	o := b.options
	if err := b.createBase(ctx); err != nil {
		return err
	}
	if err := pause(ctx, o.settle); err != nil {
		return err
	}
	if err := b.addMemory(ctx, "idle"); err != nil {
		return err
	}
	names := make([]string, o.shoots)
	for i := range names {
		names[i] = fmt.Sprintf("shoot-%05d", i)
	}
	create, err := render("shoot.yaml", names, func(name string, _ int) any { return name })
	if err != nil {
		return err
	}
	bindingNames := make([]string, o.bindings)
	for i := range bindingNames {
		bindingNames[i] = fmt.Sprintf("binding-%05d", i)
	}
	createBinding, err := render("credentialsbinding.yaml", bindingNames, func(name string, _ int) any { return name })
	if err != nil {
		return err
	}
	if err := b.load(ctx, "create", o.shoots, o.clients, func(i int) request {
		return request{http.MethodPost, collection, asJSON, asJSON, create[i]}
	}); err != nil {
		return err
	}
	if err := b.addMemory(ctx, "after creates"); err != nil {
		return err
	}
	if err := b.load(ctx, "get", o.shoots, o.clients, func(i int) request {
		return request{http.MethodGet, collection + "/" + names[i], "", asJSON, nil}
	}); err != nil {
		return err
	}
	for round, progress := range []int{42, 100} {
		patch, err := renderStatus(names, progress)
		if err != nil {
			return err
		}
		if err := b.load(ctx, fmt.Sprintf("patch status %d", round+1), o.shoots, o.clients, func(i int) request {
			return request{http.MethodPatch, collection + "/" + names[i] + "/status", mergePatch, asJSON, patch[i]}
		}); err != nil {
			return err
		}
		if err := b.addMemory(ctx, fmt.Sprintf("after patches %d", round+1)); err != nil {
			return err
		}
	}
	for _, format := range []struct{ name, accept string }{{"JSON", asJSON}, {"protobuf", asProtobuf}} {
		if err := b.load(ctx, "list "+format.name, o.lists, 1, func(int) request {
			return request{http.MethodGet, collection + "?resourceVersion=0", "", format.accept, nil}
		}); err != nil {
			return err
		}
	}
	if err := b.addMemory(ctx, "after lists"); err != nil {
		return err
	}
	if err := b.watch(ctx, names[:min(o.changes, len(names))]); err != nil {
		return err
	}
	if err := b.load(ctx, "create binding", o.bindings, o.clients, func(i int) request {
		return request{http.MethodPost, bindings, asJSON, asJSON, createBinding[i]}
	}); err != nil {
		return err
	}
	return b.addMemory(ctx, "at the end")
}

// createBase creates the objects that the measured objects refer to.
func (b *bench) createBase(ctx context.Context) error {
	data, err := objects.ReadFile("objects/base.yaml")
	if err != nil {
		return err
	}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read base.yaml: %w", err)
		}
		if err := b.env.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
}

// render fills a template for every name, and returns the bodies of requests.
func render(file string, names []string, values func(name string, i int) any) ([][]byte, error) {
	tmpl, err := template.ParseFS(objects, "objects/"+file)
	if err != nil {
		return nil, err
	}
	bodies := make([][]byte, len(names))
	for i, name := range names {
		var text bytes.Buffer
		if err := tmpl.Execute(&text, values(name, i)); err != nil {
			return nil, err
		}
		if bodies[i], err = yaml.YAMLToJSON(text.Bytes()); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return bodies, nil
}

func renderStatus(names []string, progress int) ([][]byte, error) {
	conditions := []string{
		"APIServerAvailable", "ControlPlaneHealthy", "ObservabilityComponentsHealthy", "EveryNodeReady", "SystemComponentsHealthy",
	}
	return render("status.yaml", names, func(name string, _ int) any {
		return struct {
			Name       string
			Progress   int
			Conditions []string
		}{name, progress, conditions}
	})
}

// load sends n requests with some of the clients, and adds a step to the report.
func (b *bench) load(ctx context.Context, name string, n, clients int, at func(i int) request) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	latencies := make([]time.Duration, n)
	var next, received atomic.Int64
	send := func(client *http.Client) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			start := time.Now()
			size, err := b.send(ctx, client, at(i))
			if err != nil {
				return err
			}
			latencies[i] = time.Since(start)
			received.Add(size)
		}
	}
	return b.step(ctx, name, func() (step, error) {
		var group sync.WaitGroup
		errs := make([]error, clients)
		for c := range clients {
			group.Go(func() {
				if errs[c] = send(b.clients[c]); errs[c] != nil {
					cancel()
				}
			})
		}
		group.Wait()
		return result(latencies, int(received.Load())), errors.Join(errs...)
	})
}

// step measures the CPU time of the servers while do runs, and adds a step to the report.
func (b *bench) step(ctx context.Context, name string, do func() (step, error)) error {
	fmt.Fprintln(b.progress, name)
	profiled := b.profile(ctx, name)
	before, err := b.cpuTimes()
	if err != nil {
		return err
	}
	start := time.Now()
	s, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.Name, s.Seconds = name, time.Since(start).Seconds()
	s.Rate = float64(s.Requests) / s.Seconds
	after, err := b.cpuTimes()
	if err != nil {
		return err
	}
	s.CPU = map[string]float64{}
	for program, used := range after {
		s.CPU[program] = milliseconds(used-before[program]) / float64(s.Requests)
	}
	b.report.Steps = append(b.report.Steps, s)
	return <-profiled
}

func (b *bench) cpuTimes() (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for _, program := range programs {
		var err error
		if used[program], err = cpuTime(b.env.PID(program)); err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
	}
	return used, nil
}

// addMemory adds the current memory of gardener-apiserver to the report.
func (b *bench) addMemory(ctx context.Context, when string) error {
	m := memory{When: when}
	if err := m.readMemory(b.env.PID(env.GardenerAPIServer)); err != nil {
		return err
	}
	info, err := os.Stat(b.env.DatabaseFile())
	if err != nil {
		return err
	}
	m.Database = float64(info.Size()) / (1 << 20)
	b.report.Memory = append(b.report.Memory, m)
	if b.options.profiles == "" {
		return nil
	}
	return b.fetch(ctx, "/debug/pprof/heap", filepath.Join(b.options.profiles, strings.ReplaceAll(when, " ", "-")+".heap.prof"))
}

// profile fetches profiles of gardener-apiserver, if they are requested.
func (b *bench) profile(ctx context.Context, name string) <-chan error {
	done := make(chan error, 1)
	if b.options.profiles == "" {
		done <- nil
		return done
	}
	go func() {
		file := filepath.Join(b.options.profiles, strings.ReplaceAll(name, " ", "-"))
		seconds := fmt.Sprint(int(profileTime.Seconds()))
		done <- b.fetch(ctx, "/debug/pprof/profile?seconds="+seconds, file+".cpu.prof")
	}()
	return done
}

// fetch writes a response of gardener-apiserver to a file.
func (b *bench) fetch(ctx context.Context, path, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.env.Direct.Host+path, nil)
	if err != nil {
		return err
	}
	response, err := b.direct.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}

// watch opens the watches and changes Shoots until each watch has seen every change.
func (b *bench) watch(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	version, err := b.resourceVersion(ctx)
	if err != nil {
		return err
	}
	patches, err := renderStatus(names, 99)
	if err != nil {
		return err
	}
	sent := make([]atomic.Int64, len(names)) // nanoseconds since the start
	index := map[string]int{}
	for i, name := range names {
		index[name] = i
	}
	start := time.Now()
	latencies := make([]time.Duration, b.options.watchers*len(names))
	var received atomic.Int64
	errs := make(chan error, b.options.watchers)
	for w := range b.options.watchers {
		stream, err := b.open(ctx, b.clients[w%len(b.clients)], request{ //nolint:bodyclose // its reader closes it
			http.MethodGet, collection + "?watch=true&resourceVersion=" + version, "", asJSON, nil,
		})
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		defer stream.Body.Close()
		go func() {
			reader := bufio.NewReaderSize(stream.Body, 64<<10)
			for n := range names {
				event, err := reader.ReadBytes('\n')
				if err != nil {
					errs <- err
					return
				}
				i, ok := index[nameOf(event)]
				if !ok {
					errs <- fmt.Errorf("unexpected event %.300s", event)
					return
				}
				received.Add(int64(len(event)))
				latencies[w*len(names)+n] = time.Since(start) - time.Duration(sent[i].Load())
			}
			errs <- nil
		}()
	}
	return b.step(ctx, "watch", func() (step, error) {
		for i, name := range names {
			sent[i].Store(int64(time.Since(start)))
			_, err := b.send(ctx, b.clients[i%len(b.clients)], request{
				http.MethodPatch, collection + "/" + name + "/status", mergePatch, asJSON, patches[i],
			})
			if err != nil {
				return step{}, err
			}
		}
		for range b.options.watchers {
			if err := <-errs; err != nil {
				return step{}, err
			}
		}
		return result(latencies, int(received.Load())), nil
	})
}

// nameOf returns the name of the object in an event, without reading the rest of it.
func nameOf(event []byte) string {
	_, rest, _ := bytes.Cut(event, []byte(`"metadata":{"name":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// resourceVersion returns the version of the store.
func (b *bench) resourceVersion(ctx context.Context) (string, error) {
	response, err := b.open(ctx, b.clients[0], request{http.MethodGet, collection + "?limit=1", "", asJSON, nil})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(response.Body).Decode(&list)
	return list.Metadata.ResourceVersion, err
}

func result(latencies []time.Duration, received int) step {
	slices.Sort(latencies)
	quantile := func(q float64) float64 { return milliseconds(latencies[int(q*float64(len(latencies)-1))]) }
	return step{Requests: len(latencies), P50: quantile(.5), P99: quantile(.99), Bytes: received / len(latencies)}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
