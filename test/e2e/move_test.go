//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/snapshot"
)

// testMove moves the control plane of a shoot from the first seed to the second one. Its API server is asked all the time.
func (l *landscape) testMove(t *testing.T, key client.ObjectKey) {
	former := l.shoot(t, key)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}, Data: map[string]string{"a": "b"}}
	if err := former.client.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(working(t))
	asks := &asking{of: former}
	asked := make(chan struct{})
	go func() { defer close(asked); asks.run(ctx, kept) }()
	defer func() { stop(); <-asked }()

	migrate := func(args ...string) {
		t.Helper()
		if _, err := l.gardenctl(ctx, key.Namespace, append([]string{"migrate", "shoot", key.Name, "--to=" + secondSeed}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	l.awaitShoot(t, key, func(shoot *corev1beta1.Shoot) error {
		if on := ptr.Deref(shoot.Status.SeedName, ""); on != secondSeed {
			return fmt.Errorf("it is on seed %q: %s", on, kube.ShootOperation(shoot))
		}
		return nil
	})
	moved := l.shoot(t, key) // with the address of the other gateway
	asks.use(moved)
	migrate("--wait", "--timeout="+shootTimeout.String()) // goes on with the same move
	l.awaitShoot(t, key, kube.ShootHealthy)
	stop()
	<-asked
	t.Log(asks)

	if string(moved.config.CAData) != string(former.config.CAData) {
		t.Error("the CA is another one")
	}
	if moved.config.Host == former.config.Host {
		t.Errorf("the address is still %s", moved.config.Host)
	}
	config := rest.CopyConfig(former.config)
	config.Host = moved.config.Host
	withFormerCredentials, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := &corev1.ConfigMap{}
	if err := withFormerCredentials.Get(t.Context(), client.ObjectKeyFromObject(kept), found); err != nil || found.UID != kept.UID || found.Data["a"] != "b" {
		t.Errorf("with the credentials of before, the ConfigMap is %+v: %v", found, err)
	}
	objects, err := snapshot.Take(working(t), l.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if strings.Contains(object, "shoot--local--"+key.Name) {
			t.Errorf("%s is left in the former seed", object)
		}
	}
}

// gardenctl runs the command for users of the garden, and returns what it prints.
func (l *landscape) gardenctl(ctx context.Context, namespace string, args ...string) (string, error) {
	file, err := exec.CommandContext(ctx, l.binary, "--name", l.name, "--dir", l.dir, "kubeconfig").Output()
	if err != nil {
		return "", fmt.Errorf("landscape kubeconfig: %w", err)
	}
	common := []string{"--kubeconfig", string(bytes.TrimSpace(file)), "--namespace", namespace}
	out, err := exec.CommandContext(ctx, filepath.Join(filepath.Dir(l.binary), "gardenctl"), append(common, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gardenctl %s: %w\n%s", strings.Join(args, " "), errors.Join(err, context.Cause(ctx)), out)
	}
	return string(out), nil
}

const (
	// askEvery is how often an API server is asked, askTimeout for how long it may take to answer.
	askEvery, askTimeout = 200 * time.Millisecond, 5 * time.Second
)

// asking are requests to the API server of a shoot, one after the other, as a client with one address makes them.
type asking struct {
	mu sync.Mutex
	of cluster
	// requests, failures and the longest time without an answer are figures, which depend on the machine.
	requests, failures int
	longest            time.Duration
}

// use asks at another address from now on.
func (a *asking) use(c cluster) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = c
}

// run reads an object until the context ends.
func (a *asking) run(ctx context.Context, of client.Object) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	answered := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		a.mu.Lock()
		c := a.of.client
		a.mu.Unlock()
		asked, free := context.WithTimeout(ctx, askTimeout)
		err := c.Get(asked, client.ObjectKeyFromObject(of), &corev1.ConfigMap{})
		free()
		if ctx.Err() != nil {
			return
		}
		a.mu.Lock()
		a.requests++
		if err != nil {
			a.failures++
		} else {
			a.longest, answered = max(a.longest, time.Since(answered)), time.Now()
		}
		a.mu.Unlock()
	}
}

// String has the figures.
func (a *asking) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("%d of %d requests failed, and the longest time without an answer was %s", a.failures, a.requests, a.longest.Round(100*time.Millisecond))
}
