package flow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestTasksOfAFlow(t *testing.T) {
	run := func(context.Context) error { return nil }
	tasks := []Task{
		Do("namespace", "Creating the namespace", run),
		Do("etcd", "Deploying etcd", run, "namespace").IfPresent("backup"),
		Await(time.Minute, "etcd-ready", "Waiting for etcd", run, "etcd"),
		Do("dns", "Creating DNSRecords", run, "namespace"),
	}
	if diff := cmp.Diff([]string{"etcd-ready", "dns"}, Last(tasks)); diff != "" {
		t.Errorf("Last() (-want +got):\n%s", diff)
	}
	f, err := New("test", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("namespace\netcd <- namespace\netcd-ready <- etcd\ndns <- namespace\n", f.String()); diff != "" {
		t.Errorf("flow (-want +got):\n%s", diff)
	}
	f, err = f.UpTo("etcd-ready")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("namespace\netcd <- namespace\netcd-ready <- etcd\n", f.String()); diff != "" {
		t.Errorf("flow up to a task (-want +got):\n%s", diff)
	}
	if _, err := f.UpTo("dns"); err == nil {
		t.Error("a flow ends with a task that it does not have")
	}
	f, err = New("test", Without(append(tasks, Do("shoot", "Deploying the shoot", run, "etcd-ready"), Do("backup", "Creating the backup", run)),
		"etcd", "etcd-ready")...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("namespace\ndns <- namespace\nbackup\nshoot <- namespace, backup\n", f.String()); diff != "" {
		t.Errorf("flow without two tasks (-want +got):\n%s", diff)
	}
	if tasks[0].Retry.Steps == 0 || tasks[0].RetryIf != nil {
		t.Errorf("a write is retried (%d steps) after any error", tasks[0].Retry.Steps)
	}
	if unavailable := apierrors.NewServiceUnavailable("x"); !tasks[2].RetryIf(fmt.Errorf("write: %w", unavailable)) || tasks[2].RetryIf(errors.New("x")) {
		t.Error("a wait is retried only while an API server is away")
	}
}
