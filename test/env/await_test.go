package env

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAwait(t *testing.T) {
	e := Start(t)
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	checked, changed := make(chan struct{}, 10), make(chan error, 1)
	if err := c.Create(t.Context(), Named[*corev1.ConfigMap]("default", "other")); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), Named[*corev1.ConfigMap]("default", "a")); err != nil {
		t.Fatal(err)
	}

	// It is changed after it has been checked once.
	go func() {
		<-checked
		config := Named[*corev1.ConfigMap]("default", "a")
		config.Data = map[string]string{"key": "value"}
		changed <- c.Update(t.Context(), config)
	}()
	found := Await(t, c, Named[*corev1.ConfigMap]("default", "a"), func(m *corev1.ConfigMap) error {
		checked <- struct{}{}
		if m.Data["key"] == "" {
			return errors.New("there is no key")
		}
		return nil
	})
	if err := <-changed; err != nil || found.Name != "a" || found.Data["key"] != "value" {
		t.Errorf("found %q with %v, error %v", found.Name, found.Data, err)
	}

	metadata := Named[*metav1.PartialObjectMetadata]("default", "a")
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if got := Await(t, c, metadata, Exists); got.UID != found.UID {
		t.Errorf("metadata is %+v", got)
	}

	go func() { changed <- c.Delete(t.Context(), Named[*corev1.ConfigMap]("default", "a")) }()
	AwaitGone(t, c, found)
	if err := <-changed; err != nil {
		t.Error(err)
	}
	AwaitList(t, c, func(left []*corev1.ConfigMap) error {
		if len(left) == 0 {
			return errors.New("the other one is gone too")
		}
		return nil
	}, client.InNamespace("default"))

	// The context ends after the first check.
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := &recorder{TB: t}
	AwaitListUntil(ctx, failed, c, func(left []*corev1.ConfigMap) error {
		cancel(errors.New("the time is over"))
		return fmt.Errorf("there are %d, want 0", len(left))
	}, only(Named[*corev1.ConfigMap]("default", "other"))...)
	want := "the time is over: there are 1, want 0\nlast seen:\n--- *v1.ConfigMap\nmetadata:\n"
	if got, ok := strings.CutPrefix(failed.text, want); !ok || !strings.Contains(got, "\n  name: other\n") {
		t.Errorf("report is %q, want it to start with %q", failed.text, want)
	}
}

func TestAwaitRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, forbidden := &recorder{TB: t}, errors.New("forbidden")
		tries := 0
		AwaitRequest(failed, func(context.Context) error {
			if tries++; tries < 3 {
				return forbidden
			}
			return nil
		})
		if tries != 3 || failed.text != "" {
			t.Errorf("%d requests, want 3; the report is %q", tries, failed.text)
		}
		// The last request ends with the time, and says no more than that.
		AwaitRequest(failed, func(ctx context.Context) error {
			if tries++; tries < 6 {
				return forbidden
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if diff := cmp.Diff("timed out after 1m30s: forbidden", failed.text); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	})
}

func TestAwaitUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, object := &recorder{TB: t}, Named[*corev1.ConfigMap]("default", "a")
		cache := fake.NewFakeClient(object)
		AwaitUnknown(failed, cache, object)
		if want := "timed out after 1m30s: the cache has *v1.ConfigMap default/a still, with finalizers []"; failed.text != want {
			t.Errorf("report is %q, want %q", failed.text, want)
		}
		failed.text = ""
		if err := cache.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		if AwaitUnknown(failed, cache, object); failed.text != "" {
			t.Errorf("report is %q", failed.text)
		}
	})
}

// recorder keeps the text of a failure.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Fatalf(format string, args ...any) { r.text = fmt.Sprintf(format, args...) }

func TestNone(t *testing.T) {
	if err := None([]*corev1.Secret{}); err != nil {
		t.Error(err)
	}
	secret := Named[*corev1.Secret]("default", "a")
	secret.Finalizers = []string{"example.com/a"}
	if err, want := None([]*corev1.Secret{secret}), "*v1.Secret default/a still exists, with finalizers [example.com/a]"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestDescribe(t *testing.T) {
	secret := Named[*corev1.Secret]("default", "a")
	secret.Data = map[string][]byte{"password": []byte("secret")}
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "test"}}
	want := "\n--- *v1.Secret\ndata:\n  password: NiBieXRlcw==\nmetadata:\n  name: a\n  namespace: default" // "6 bytes"
	if diff := cmp.Diff(want, describe([]*corev1.Secret{secret})); diff != "" {
		t.Errorf("an object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(" no object", describe([]*corev1.Secret{})); diff != "" {
		t.Errorf("no object (-want +got):\n%s", diff)
	}
	var many []*corev1.ConfigMap
	want = ""
	for i := range shown + 2 {
		name := fmt.Sprintf("c%d", i)
		many = append(many, Named[*corev1.ConfigMap]("", name))
		if i < shown {
			want += "\n--- *v1.ConfigMap\nmetadata:\n  name: " + name
		}
	}
	if diff := cmp.Diff(want+"\n--- and 2 more", describe(many)); diff != "" {
		t.Errorf("many objects (-want +got):\n%s", diff)
	}
}
