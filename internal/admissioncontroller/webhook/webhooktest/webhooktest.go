// Package webhooktest makes the requests that tests of webhooks handle, and checks the answers.
package webhooktest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// Scheme returns the kinds that webhooks know.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Decoder returns a decoder of these kinds.
func Decoder(t testing.TB) admission.Decoder {
	t.Helper()
	return admission.NewDecoder(Scheme(t))
}

// Garden returns a builder of a garden with some objects.
func Garden(t testing.TB, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(Scheme(t)).WithObjects(objects...)
}

// Unreachable returns a garden in which nothing can be read.
func Unreachable(t testing.TB) client.Client {
	t.Helper()
	err := errors.New("unreachable")
	return Garden(t).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return err
		},
	}).Build()
}

// Create returns a request to create an object of a resource. A nil object stands for one that cannot be decoded, here and below.
func Create(t testing.TB, resource string, object client.Object) admission.Request {
	t.Helper()
	return request(t, admissionv1.Create, resource, object, nil)
}

// Update returns a request to update an object.
func Update(t testing.TB, resource string, object, old client.Object) admission.Request {
	t.Helper()
	return request(t, admissionv1.Update, resource, object, old)
}

// Delete returns a request to delete an object.
func Delete(t testing.TB, resource string, old client.Object) admission.Request {
	t.Helper()
	return request(t, admissionv1.Delete, resource, nil, old)
}

func request(t testing.TB, operation admissionv1.Operation, resource string, object, old client.Object) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource}}}
	raw := func(object client.Object) runtime.RawExtension {
		if object == nil {
			return runtime.RawExtension{Raw: []byte("{")}
		}
		kind, err := apiutil.GVKForObject(object, Scheme(t))
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		r.Kind, r.Name, r.Namespace = metav1.GroupVersionKind(kind), object.GetName(), object.GetNamespace()
		r.Resource.Group, r.Resource.Version = kind.Group, kind.Version
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	if operation != admissionv1.Create {
		r.OldObject = raw(old)
	}
	if operation != admissionv1.Delete {
		r.Object = raw(object)
	}
	return r
}

// Allowed is the code of a request that is allowed.
const Allowed = http.StatusOK

// Expect checks the code of an answer, and that its message contains some texts.
func Expect(t testing.TB, response admission.Response, code int, contains ...string) {
	t.Helper()
	if response.Result == nil || int(response.Result.Code) != code || response.Allowed != (code == Allowed) {
		t.Fatalf("the answer is %v %+v, want code %d", response.Allowed, response.Result, code)
	}
	for _, text := range contains {
		if !strings.Contains(response.Result.Message, text) {
			t.Errorf("the message is %q, want %q in it", response.Result.Message, text)
		}
	}
}
