package namespacedeletion

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

func TestHandle(t *testing.T) {
	namespace := func(change ...func(*corev1.Namespace)) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-a", Labels: map[string]string{"project.gardener.cloud/name": "a"}}}
		for _, c := range change {
			c(n)
		}
		return n
	}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	deleted := project.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Now()}, []string{"gardener"}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "s"}}
	elsewhere := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-b", Name: "s"}}
	noShoots := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("unreachable")
	}}
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		garden    client.Client
		code      int
		message   []string
	}{
		"not decodable":           {nil, nil, http.StatusBadRequest, nil},
		"without a label":         {namespace(func(n *corev1.Namespace) { n.Labels = nil }), nil, webhooktest.Allowed, nil},
		"deleted already":         {namespace(func(n *corev1.Namespace) { n.DeletionTimestamp = deleted.DeletionTimestamp }), nil, webhooktest.Allowed, nil},
		"without a Project":       {namespace(), webhooktest.Garden(t).Build(), webhooktest.Allowed, nil},
		"garden unreachable":      {namespace(), webhooktest.Unreachable(t), http.StatusInternalServerError, []string{`Project "a"`, "unreachable"}},
		"Project":                 {namespace(), webhooktest.Garden(t, project).Build(), http.StatusForbidden, []string{`Project "a"`}},
		"Project with a Shoot":    {namespace(), webhooktest.Garden(t, project, shoot).Build(), http.StatusForbidden, []string{`Project "a"`}},
		"deleted Project":         {namespace(), webhooktest.Garden(t, deleted, elsewhere).Build(), webhooktest.Allowed, nil},
		"deleted, with a Shoot":   {namespace(), webhooktest.Garden(t, deleted, shoot).Build(), http.StatusForbidden, []string{"still has Shoots", `"s"`}},
		"Shoots cannot be listed": {namespace(), webhooktest.Garden(t, deleted).WithInterceptorFuncs(noShoots).Build(), http.StatusInternalServerError, []string{"list Shoots"}},
	} {
		t.Run(name, func(t *testing.T) {
			var old client.Object
			if tc.namespace != nil {
				old = tc.namespace
			}
			h := &Handler{Reader: tc.garden, Decoder: webhooktest.Decoder(t)}
			webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Delete(t, "namespaces", old)), tc.code, tc.message...)
		})
	}
	t.Run("others", func(t *testing.T) {
		h := &Handler{Reader: webhooktest.Unreachable(t), Decoder: webhooktest.Decoder(t)}
		webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Create(t, "namespaces", namespace())), webhooktest.Allowed)
		webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Update(t, "namespaces", namespace(), namespace())), webhooktest.Allowed)
	})
}
