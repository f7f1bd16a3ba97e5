package containers

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/events"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	containerd "github.com/containerd/containerd/v2/client"
	ctrs "github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/runtime/restart"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gardener.cloud/gardener/landscape/host"
)

// Client starts and stops containers of one landscape.
type Client struct {
	inner *containerd.Client
	dir   string // for FIFOs of running commands
	runc  runcoptions.Options
}

// Close closes the connection. Containers keep running.
func (c *Client) Close() error { return c.inner.Close() }

// Container is the desired state of a container. Containers are restarted by containerd when they end.
type Container struct {
	// Name is the container's id.
	Name string
	// Image is the reference of an image that was imported.
	Image string
	// Args replace the image's command; its entry point is kept.
	Args []string
	// Log is a file that the container's output is appended to.
	Log string
	// Network is the path of the network namespace to join.
	Network string
	// Cgroup is the control group to run in.
	Cgroup string
	// Mounts are added to the usual ones.
	Mounts []specs.Mount
	// Privileged gives all capabilities and devices of the calling process, and lets mounts propagate.
	Privileged bool
	// Hostname is the host name; empty for the container's name.
	Hostname string
	// Revision differs for changes that the other fields do not have, such as the content of a mounted file.
	Revision string
	// KeepExisting keeps a container that was created from other values, because it holds data that is nowhere else.
	KeepExisting bool `json:"-"`
}

const revisionLabel = "landscape.gardener.cloud/revision"

// Import imports the images of an OCI layout directory, unless containerd has them already.
func (c *Client) Import(ctx context.Context, layout string, images map[string]string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	missing := false
	for reference, digest := range images {
		image, err := c.inner.GetImage(ctx, reference)
		if err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("look for image %s: %w", reference, err)
		}
		missing = missing || err != nil || image.Target().Digest.String() != digest
	}
	if missing {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(archive(writer, layout)) }()
		if _, err := c.inner.Import(ctx, reader, containerd.WithImageRefTranslator(func(ref string) string { return ref })); err != nil {
			return fmt.Errorf("import images from %s: %w", layout, err)
		}
	}
	for reference := range images {
		image, err := c.inner.GetImage(ctx, reference)
		if err != nil {
			return fmt.Errorf("image %s was not in %s: %w", reference, layout, err)
		}
		// Unpacking is a separate step, and the one that an interrupted run may not have done.
		if err := image.Unpack(ctx, ""); err != nil {
			return fmt.Errorf("unpack image %s: %w", reference, err)
		}
	}
	return nil
}

func archive(w io.Writer, dir string) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Name: name, Size: info.Size(), Mode: 0o644}); err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(out, file)
		return err
	})
	return errors.Join(err, out.Close())
}

// Ensure creates and starts the container. One that was created from other values is replaced, and a stopped one started.
func (c *Client) Ensure(ctx context.Context, want Container) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	revision, err := revisionOf(want)
	if err != nil {
		return err
	}
	container, err := c.inner.LoadContainer(ctx, want.Name)
	if err == nil {
		labels, err := container.Labels(ctx)
		if err != nil {
			return err
		}
		if labels[revisionLabel] != revision && !want.KeepExisting {
			if err := c.Remove(ctx, want.Name); err != nil {
				return err
			}
			container = nil
		}
	} else if !errdefs.IsNotFound(err) {
		return fmt.Errorf("look for container %q: %w", want.Name, err)
	}
	if container == nil {
		if container, err = c.create(ctx, want, revision); err != nil {
			return fmt.Errorf("create container %q: %w", want.Name, err)
		}
	}
	if err := c.start(ctx, container, want.Log); err != nil {
		return fmt.Errorf("start container %q: %w", want.Name, err)
	}
	return nil
}

func revisionOf(want Container) (string, error) {
	data, err := json.Marshal(want)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

func (c *Client) create(ctx context.Context, want Container, revision string) (containerd.Container, error) {
	image, err := c.inner.GetImage(ctx, want.Image)
	if err != nil {
		return nil, err
	}
	// A run that was interrupted between snapshot and container leaves the snapshot.
	if err := c.inner.SnapshotService("").Remove(ctx, want.Name); err != nil && !errdefs.IsNotFound(err) {
		return nil, err
	}
	return c.inner.NewContainer(ctx, want.Name,
		containerd.WithImage(image),
		containerd.WithNewSnapshot(want.Name, image),
		containerd.WithRuntime("io.containerd.runc.v2", &c.runc),
		containerd.WithNewSpec(specOptions(image, want)...),
		containerd.WithAdditionalContainerLabels(map[string]string{revisionLabel: revision}),
	)
}

func specOptions(image containerd.Image, want Container) []oci.SpecOpts {
	hostname := want.Hostname
	if hostname == "" {
		hostname = want.Name
	}
	options := []oci.SpecOpts{
		oci.WithDefaultSpec(),
		oci.WithImageConfigArgs(image, want.Args),
		oci.WithHostname(hostname),
		oci.WithCgroup(want.Cgroup),
		oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: want.Network}),
		withOurFileLimit,
	}
	if want.Privileged {
		options = append(options,
			oci.WithAllCurrentCapabilities, // Not all that exist: some hosts do not grant all.
			oci.WithMaskedPaths(nil), oci.WithReadonlyPaths(nil),
			oci.WithWriteableSysfs, oci.WithWriteableCgroupfs,
			oci.WithSeccompUnconfined, oci.WithApparmorProfile(""), oci.WithSelinuxLabel(""), oci.WithNewPrivileges,
			oci.WithAllDevicesAllowed,
			withDevices("/dev/kmsg", "/dev/fuse", "/dev/net/tun"),
			withSharedRoot,
		)
	}
	for _, mount := range want.Mounts {
		options = append(options, oci.WithoutMounts(mount.Destination))
	}
	return append(options, oci.WithMounts(want.Mounts))
}

// withOurFileLimit raises the limit of open files to that of this process: more needs a capability that not every host grants.
func withOurFileLimit(_ context.Context, _ oci.Client, _ *ctrs.Container, s *oci.Spec) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	s.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: limit.Max, Hard: limit.Max}}
	return nil
}

func withDevices(paths ...string) oci.SpecOpts {
	return func(ctx context.Context, client oci.Client, container *ctrs.Container, s *oci.Spec) error {
		for _, path := range paths {
			if _, err := os.Stat(path); err != nil {
				continue
			}
			if err := oci.WithDevices(path, path, "rwm")(ctx, client, container, s); err != nil {
				return err
			}
		}
		return nil
	}
}

func withSharedRoot(_ context.Context, _ oci.Client, _ *ctrs.Container, s *oci.Spec) error {
	s.Linux.RootfsPropagation = "shared"
	return nil
}

// start starts the container, and sets the policy with which containerd restarts it. From then on only containerd starts it:
// two who do that at the same time delete each other's tasks.
func (c *Client) start(ctx context.Context, container containerd.Container, log string) error {
	labels, err := container.Labels(ctx)
	if err != nil {
		return err
	}
	if labels[restart.StatusLabel] == string(containerd.Running) {
		return c.awaitRestart(ctx, container)
	}
	if err := run(ctx, container, log); err != nil {
		return err
	}
	policy, err := restart.NewPolicy("always")
	if err != nil {
		return err
	}
	return container.Update(ctx, containerd.UpdateContainerOpts(restart.WithLogURI(&url.URL{Scheme: "file", Path: log})),
		containerd.UpdateContainerOpts(restart.WithPolicy(policy)), containerd.UpdateContainerOpts(restart.WithStatus(containerd.Running)))
}

// awaitRestart waits until a container that containerd restarts runs.
func (c *Client) awaitRestart(ctx context.Context, container containerd.Container) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("containerd has not restarted it within %s; its log says why", startTimeout))
	defer cancel()
	started, lost := c.inner.EventService().Subscribe(ctx, `topic=="/tasks/start"`)
	if _, runs, err := task(ctx, container); err != nil || runs {
		return err
	}
	for {
		select {
		case event := <-started:
			start, err := typeurl.UnmarshalAny(event.Event)
			if err != nil {
				return err
			}
			if start, ok := start.(*events.TaskStart); ok && start.ContainerID == container.ID() {
				return nil
			}
		case err := <-lost:
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

// task returns the container's task, or nil if it has none, and whether its process runs.
func task(ctx context.Context, container containerd.Container) (t containerd.Task, runs bool, err error) {
	t, err = container.Task(ctx, nil)
	if errdefs.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	status, err := t.Status(ctx)
	if errdefs.IsNotFound(err) {
		return nil, false, nil
	}
	// containerd may be about to notice that the process has ended.
	return t, err == nil && status.Status == containerd.Running && !host.HasEnded(int(t.Pid())), err
}

// run starts a container that containerd does not restart yet. A call that was interrupted may have left a task.
func run(ctx context.Context, container containerd.Container, log string) error {
	left, runs, err := task(ctx, container)
	if err != nil || runs {
		return err
	}
	if left != nil {
		if _, err := left.Delete(ctx, containerd.WithProcessKill); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return err
	}
	created, err := container.NewTask(ctx, cio.LogFile(log))
	if err != nil {
		return err
	}
	return created.Start(ctx)
}

// Stop kills the processes of a container, as a power cut does, and keeps its data. It stays stopped until Start or Ensure. A missing container is no
// error.
func (c *Client) Stop(ctx context.Context, name string) error {
	_, err := c.stop(namespaces.WithNamespace(ctx, Namespace), name)
	return err
}

// stop is Stop. It returns the container, or nil if it is missing.
func (c *Client) stop(ctx context.Context, name string) (containerd.Container, error) {
	container, err := c.inner.LoadContainer(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The restart monitor must not restart it in between.
	if err := container.Update(ctx, restart.WithNoRestarts); err != nil {
		return nil, fmt.Errorf("stop restarts of container %q: %w", name, err)
	}
	if task, err := container.Task(ctx, nil); err == nil {
		if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil && !errdefs.IsNotFound(err) {
			return nil, fmt.Errorf("stop container %q: %w", name, err)
		}
	} else if !errdefs.IsNotFound(err) {
		return nil, err
	}
	return container, nil
}

// Start starts a container that was created before; its output is appended to a file. One that runs is no error.
func (c *Client) Start(ctx context.Context, name, log string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	container, err := c.inner.LoadContainer(ctx, name)
	if err != nil {
		return fmt.Errorf("find container %q: %w", name, err)
	}
	if err := c.start(ctx, container, log); err != nil {
		return fmt.Errorf("start container %q: %w", name, err)
	}
	return nil
}

// Remove stops a container and deletes it with its snapshot. A missing container is no error.
func (c *Client) Remove(ctx context.Context, name string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	container, err := c.stop(ctx, name)
	if err != nil || container == nil {
		return err
	}
	if err := container.Delete(ctx, containerd.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete container %q: %w", name, err)
	}
	return nil
}

// PID returns the process id of a running container's first process, or 0 if it does not run.
func (c *Client) PID(ctx context.Context, name string) (int, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	container, err := c.inner.LoadContainer(ctx, name)
	if errdefs.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	task, err := container.Task(ctx, nil)
	if errdefs.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	status, err := task.Status(ctx)
	if err != nil || status.Status != containerd.Running {
		return 0, err
	}
	return int(task.Pid()), nil
}

// ExitError is the error of a command that exited with a code other than 0.
type ExitError struct {
	Command []string
	Code    int
	// Output is the end of what the command wrote.
	Output string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%q returned %d: %s", strings.Join(e.Command, " "), e.Code, e.Output)
}

// Run runs a command in a container and returns what it wrote to standard output. A command that fails gives an
// *ExitError.
func (c *Client) Run(ctx context.Context, name string, stdin io.Reader, command ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	code, err := c.Exec(ctx, name, Streams{In: stdin, Out: &stdout, Err: &stderr}, command...)
	if err != nil {
		return "", err
	}
	if code != 0 {
		const end = 2000
		output := strings.TrimSpace(stderr.String() + stdout.String())
		return "", &ExitError{Command: command, Code: code, Output: output[max(0, len(output)-end):]}
	}
	return stdout.String(), nil
}

// Streams are a command's standard streams. A terminal has its errors on Out.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal gives the command a terminal, whose size changes with Resize.
	Terminal bool
	Resize   <-chan Size
}

// Size is a terminal's size in characters.
type Size struct{ Width, Height uint32 }

// Exec runs a command in a container with the given streams and returns its exit code.
func (c *Client) Exec(ctx context.Context, name string, streams Streams, command ...string) (code int, err error) {
	ctx, cancel := context.WithCancel(namespaces.WithNamespace(ctx, Namespace))
	defer cancel()
	container, err := c.inner.LoadContainer(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("find container %q: %w", name, err)
	}
	spec, err := container.Spec(ctx)
	if err != nil {
		return 0, err
	}
	task, err := container.Task(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("container %q does not run: %w", name, err)
	}
	process := *spec.Process
	process.Args, process.Terminal, process.Cwd = command, streams.Terminal, "/"
	ended := make(chan struct{})
	if streams.In != nil {
		streams.In = &notifyingReader{Reader: streams.In, ended: ended}
	}
	options := []cio.Opt{cio.WithStreams(streams.In, streams.Out, streams.Err), cio.WithFIFODir(filepath.Join(c.dir, "fifo"))}
	if streams.Terminal {
		process.Env = append(process.Env, "TERM="+os.Getenv("TERM"))
		options = append(options, cio.WithTerminal)
	}
	exec, err := task.Exec(ctx, fmt.Sprintf("exec-%d-%d", os.Getpid(), time.Now().UnixNano()), &process, cio.NewCreator(options...))
	if err != nil {
		return 0, fmt.Errorf("run %q in container %q: %w", strings.Join(command, " "), name, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, deleteErr := exec.Delete(ctx, containerd.WithProcessKill)
		err = errors.Join(err, deleteErr)
	}()
	exited, err := exec.Wait(context.WithoutCancel(ctx))
	if err != nil {
		return 0, err
	}
	if err := exec.Start(ctx); err != nil {
		return 0, fmt.Errorf("run %q in container %q: %w", strings.Join(command, " "), name, err)
	}
	go func() { // The command only sees the end of its input once it is closed here.
		select {
		case <-ended:
			_ = exec.CloseIO(context.WithoutCancel(ctx), containerd.WithStdinCloser)
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case size := <-streams.Resize:
			if err := exec.Resize(ctx, size.Width, size.Height); err != nil {
				return 0, err
			}
		case status := <-exited:
			exec.IO().Wait() // The streams are complete only now.
			return int(status.ExitCode()), status.Error()
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// notifyingReader closes a channel at the end of its input.
type notifyingReader struct {
	io.Reader
	once  sync.Once
	ended chan struct{}
}

func (r *notifyingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.once.Do(func() { close(r.ended) })
	}
	return n, err
}

// Follow runs a command and copies its output to out, until the returned function is called.
func (c *Client) Follow(ctx context.Context, name string, out io.Writer, command ...string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Exec(ctx, name, Streams{Out: out, Err: io.Discard}, command...)
	}()
	return func() {
		cancel()
		<-done
	}
}
