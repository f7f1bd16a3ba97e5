package backuprestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// timeout is how long to wait for anything on a busy machine.
const timeout = 60 * time.Second

// cluster is an etcd cluster of processes of this machine. The name of a member is its address, so that URLs with the name
// of a member in it lead to it.
type cluster struct {
	t                              *testing.T
	etcd                           string
	dir                            string
	clientPort, peerPort, httpPort int
	// ready are the members that the endpoint for clients leads to, as a Service does.
	endpoint string
	mutex    sync.Mutex
	ready    []string
	leases   *backuprestoreconfigv1alpha1.Leases
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), etcd: env.Program(t, "etcd", "etcd")}
	free := ports.Free(t, 3)
	c.clientPort, c.peerPort, c.httpPort = free[0], free[1], free[2]
	c.serveEndpoint()
	return c
}

// serveEndpoint forwards connections to one of the members that are ready.
func (c *cluster) serveEndpoint() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the test is over
	c.endpoint = "http://" + listener.Addr().String()
	var next atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.mutex.Lock()
			ready := c.ready
			c.mutex.Unlock()
			if len(ready) == 0 {
				conn.Close() //nolint:errcheck // no member is ready
				continue
			}
			member := ready[int(next.Add(1))%len(ready)]
			go func() {
				defer conn.Close() //nolint:errcheck // the other side is gone
				to, err := net.Dial("tcp", net.JoinHostPort(member, strconv.Itoa(c.clientPort)))
				if err != nil {
					return
				}
				defer to.Close() //nolint:errcheck // the other side is gone
				go func() {
					_, _ = io.Copy(to, conn)
					to.Close() //nolint:errcheck // ends the other direction
				}()
				_, _ = io.Copy(conn, to)
			}()
		}
	}()
}

func (c *cluster) setReady(members ...string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ready = members
}

// member is one of the members, with the processes of its pod.
type member struct {
	*cluster
	name   string
	config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration
	etcd   *exec.Cmd
	stop   func() // the sidecar
}

// memberAddress is where a member listens.
func memberAddress(number int) string { return fmt.Sprintf("127.0.1.%d", number+1) }

func (c *cluster) member(number int, change ...func(*backuprestoreconfigv1alpha1.BackupRestoreConfiguration)) *member {
	c.t.Helper()
	name := memberAddress(number)
	url := func(port int) string {
		return "http://" + backuprestoreconfigv1alpha1.MemberPlaceholder + ":" + strconv.Itoa(port)
	}
	dir := filepath.Join(c.dir, name)
	config := &backuprestoreconfigv1alpha1.BackupRestoreConfiguration{
		DataDir: filepath.Join(dir, "data", "new.etcd"),
		Etcd: backuprestoreconfigv1alpha1.Etcd{
			ConfigFile:     filepath.Join(dir, "config", "etcd.yaml"),
			RequestTimeout: &metav1.Duration{Duration: 3 * time.Second},
			Config: &runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"listen-client-urls":"http://%[1]s:%[2]d","listen-peer-urls":"http://%[1]s:%[3]d","unsafe-no-fsync":true,"log-level":"error","heartbeat-interval":100,"election-timeout":1000}`,
				name, c.clientPort, c.peerPort)},
		},
		Cluster: backuprestoreconfigv1alpha1.Cluster{
			Token: "test", BootstrapMember: memberAddress(0), ClientEndpoint: c.endpoint,
			PeerURL: url(c.peerPort), ClientURL: url(c.clientPort), BackupURL: url(c.httpPort),
		},
		Server: backuprestoreconfigv1alpha1.Server{BindAddress: name, Port: int32(c.httpPort)},
		Store:  &backuprestoreconfigv1alpha1.Store{Provider: snapstore.Local, Container: filepath.Join(c.dir, "store"), Prefix: "etcd-main"},
		Snapshots: backuprestoreconfigv1alpha1.Snapshots{
			DeltaPeriod: &metav1.Duration{Duration: time.Second}, Compression: "gzip",
		},
		LeaderElection: backuprestoreconfigv1alpha1.LeaderElection{
			Period: &metav1.Duration{Duration: 100 * time.Millisecond}, Timeout: &metav1.Duration{Duration: 5 * time.Second},
		},
		Leases: c.leases,
	}
	for _, f := range change {
		f(config)
	}
	backuprestoreconfigv1alpha1.SetDefaults_BackupRestoreConfiguration(config)
	if err := Config.Validate(config).ToAggregate(); err != nil {
		c.t.Fatal(err)
	}
	m := &member{cluster: c, name: name, config: config}
	c.t.Cleanup(m.kill)
	return m
}

// initialize runs before etcd starts. Members may have to wait for each other, so it has a longer timeout.
func (m *member) initialize() error {
	ctx, cancel := context.WithTimeout(m.ctx(), 3*timeout)
	defer cancel()
	return Initialize(ctx, m.config, m.name)
}

func (m *member) ctx() context.Context {
	return logr.NewContext(m.t.Context(), testr.New(m.t).WithName(m.name))
}

// start starts etcd.
func (m *member) start() {
	m.t.Helper()
	m.etcd = exec.Command(m.cluster.etcd, "--config-file="+m.config.Etcd.ConfigFile)
	m.etcd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.etcd.Stdout, m.etcd.Stderr = m.t.Output(), m.t.Output()
	if err := m.etcd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// serve starts the sidecar.
func (m *member) serve() {
	ctx, cancel := context.WithCancel(m.ctx())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := Serve(ctx, m.config, m.name); err != nil {
			m.t.Errorf("server of %s: %v", m.name, err)
		}
	}()
	m.stop = func() {
		cancel()
		<-done
	}
}

// run starts all processes of the pod, and waits until etcd responds.
func (m *member) run() *clientv3.Client {
	m.t.Helper()
	if err := m.initialize(); err != nil {
		m.t.Fatalf("initialize %s: %v", m.name, err)
	}
	m.start()
	m.serve()
	return m.client()
}

// kill kills etcd, and stops the sidecar.
func (m *member) kill() {
	m.killEtcd()
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

func (m *member) killEtcd() {
	if m.etcd != nil {
		_ = m.etcd.Process.Kill()
		_ = m.etcd.Wait() // it was killed
		m.etcd = nil
	}
}

// client waits until etcd responds.
func (m *member) client() *clientv3.Client {
	m.t.Helper()
	url := fmt.Sprintf("http://%s:%d", m.name, m.clientPort)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test is over
	m.eventually("etcd responds", func(ctx context.Context) error {
		_, err := c.Status(ctx, url)
		return err
	})
	return c
}

// eventually waits until a check succeeds.
func (c *cluster) eventually(what string, check func(ctx context.Context) error) {
	c.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(c.t.Context(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		c.t.Fatalf("waiting until %s: %v", what, errors.Join(err, last))
	}
}

// post sends a request to the sidecar until it succeeds.
func (m *member) post(path string) string {
	m.t.Helper()
	var body []byte
	m.eventually(path+" works", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s:%d%s", m.name, m.httpPort, path), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err = io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", response.Status, body)
		}
		return err
	})
	return string(body)
}

// put writes a key and returns the revision of the write.
func put(t *testing.T, c *clientv3.Client, key, value string, options ...clientv3.OpOption) int64 {
	t.Helper()
	response, err := c.Put(t.Context(), key, value, options...)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// content returns all keys with their values.
func content(t *testing.T, c *clientv3.Client) map[string]string {
	t.Helper()
	response, err := c.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, kv := range response.Kvs {
		out[string(kv.Key)] = string(kv.Value)
	}
	return out
}
