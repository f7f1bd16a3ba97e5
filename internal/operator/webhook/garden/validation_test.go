package garden

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
)

// A Garden is deleted only with a confirmation and without Seeds and Shoots. If that cannot be checked, it takes another annotation.
func TestDelete(t *testing.T) {
	scheme := k8sruntime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		confirmed, forced, deleted bool
		bucket                     string
		remaining                  []string
		err                        error
		// message is in the refusal, warning in the warning of an allowed deletion.
		message, warning string
	}{
		"without a confirmation":  {message: constants.ConfirmationDeletion},
		"confirmed":               {confirmed: true},
		"with a Seed and a Shoot": {confirmed: true, remaining: []string{`Seed "a"`, `Shoot "b/c"`}, message: `still has Seed "a", Shoot "b/c"`},
		"with a Seed, forced":     {confirmed: true, forced: true, remaining: []string{`Seed "a"`}, message: `still has Seed "a"`},
		"no virtual garden":       {confirmed: true, err: virtualcluster.ErrNoSecret},
		"no token":                {confirmed: true, err: virtualcluster.ErrNoAccess, message: operatorv1alpha1.ForceDeletion + "=true"},
		"it does not respond":     {confirmed: true, err: errors.New("connection refused"), message: "(connection refused); to delete it all the same, annotate it with " + operatorv1alpha1.ForceDeletion},
		"no response, forced":     {confirmed: true, forced: true, err: errors.New("connection refused"), warning: "connection refused"},
		"forced, not confirmed":   {forced: true, message: constants.ConfirmationDeletion},
		"its own bucket":          {confirmed: true, bucket: "backups"},
		"a bucket with a prefix":  {confirmed: true, bucket: "backups/eu", warning: `spec.virtualCluster.etcd.main.backup.bucketName: the whole bucket "backups" is deleted`},
		"refused, with a prefix":  {bucket: "backups/eu", message: constants.ConfirmationDeletion},
		"deleted already":         {bucket: "backups/eu", deleted: true, remaining: []string{`Seed "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
			if tc.confirmed {
				metav1.SetMetaDataAnnotation(&garden.ObjectMeta, constants.ConfirmationDeletion, "true")
			}
			if tc.forced {
				metav1.SetMetaDataAnnotation(&garden.ObjectMeta, operatorv1alpha1.ForceDeletion, "true")
			}
			if tc.bucket != "" {
				garden.Spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{BucketName: &tc.bucket}}}
			}
			if tc.deleted {
				garden.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			h := &Validator{Decoder: admission.NewDecoder(scheme), Remaining: func(context.Context) ([]string, error) { return tc.remaining, tc.err }}
			response := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Delete, Name: "g", OldObject: k8sruntime.RawExtension{Raw: encode(t, garden)},
			}})
			if response.Allowed != (tc.message == "") {
				t.Errorf("allowed %t: %v", response.Allowed, response.Result)
			}
			if tc.message != "" && !strings.Contains(response.Result.Message, tc.message) {
				t.Errorf("message is %q, want one with %q", response.Result.Message, tc.message)
			}
			if got := strings.Join(response.Warnings, "; "); !strings.Contains(got, tc.warning) || (tc.warning == "") != (got == "") {
				t.Errorf("warning is %q, want one with %q", got, tc.warning)
			}
		})
	}
}

// Users are warned of what has no effect when they change it, and controllers are not.
func TestWarnings(t *testing.T) {
	scheme := k8sruntime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	minimum := func(g *operatorv1alpha1.Garden) {
		g.Spec.RuntimeCluster.Volume = &operatorv1alpha1.Volume{MinimumSize: new(resource.MustParse("20Gi"))}
	}
	operation := func(g *operatorv1alpha1.Garden) {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, constants.GardenerOperation, constants.OperationRotateObservabilityCredentials)
	}
	for name, tc := range map[string]struct {
		operation   admissionv1.Operation
		old, change func(*operatorv1alpha1.Garden)
		want        []string
	}{
		"created": {operation: admissionv1.Create, change: minimum, want: []string{"spec.runtimeCluster.volume.minimumSize: has no effect yet"}},
		"changed": {operation: admissionv1.Update, change: minimum, want: []string{"spec.runtimeCluster.volume.minimumSize: has no effect yet"}},
		"volumes that exist": {operation: admissionv1.Update, change: func(g *operatorv1alpha1.Garden) {
			g.Spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Events: &operatorv1alpha1.ETCDEvents{Storage: &operatorv1alpha1.Storage{Capacity: new(resource.MustParse("20Gi"))}}}
		}, want: []string{"spec.virtualCluster.etcd.events.storage: counts only when the Etcd is created"}},
		"an operation":      {operation: admissionv1.Update, change: operation, want: []string{"rotate-observability-credentials renews Secret observability-ingress"}},
		"an operation ends": {operation: admissionv1.Update, old: operation, change: func(g *operatorv1alpha1.Garden) { g.Annotations = nil }},
		"other metadata": {operation: admissionv1.Update, old: minimum, change: func(g *operatorv1alpha1.Garden) {
			g.Finalizers = []string{operatorv1alpha1.FinalizerName}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g", ResourceVersion: "1"}}
			if tc.old != nil {
				tc.old(garden)
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: tc.operation, Name: "g"}}
			if tc.operation == admissionv1.Update {
				request.OldObject.Raw = encode(t, garden)
			}
			tc.change(garden)
			request.Object.Raw = encode(t, garden)
			h := &Validator{Decoder: admission.NewDecoder(scheme), Reader: fake.NewClientBuilder().WithScheme(scheme).Build()}
			got := h.Handle(t.Context(), request).Warnings
			if len(got) != len(tc.want) || len(got) > 0 && !strings.Contains(got[0], tc.want[0]) {
				t.Errorf("got warnings %q, want %q", got, tc.want)
			}
		})
	}
}

func encode(t *testing.T, garden *operatorv1alpha1.Garden) []byte {
	t.Helper()
	raw, err := json.Marshal(garden)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
