// Package restriction decides which objects the clients of seeds and of self-hosted shoots may create: gardenlets, extensions and gardenadm.
// The authorizer lets them create objects of many kinds, as it does not know what is in them; the admission does.
//
// It is used by webhooks, for objects that a kube-apiserver stores, and by admission plugins of gardener-apiserver, which decide the same and
// read what they need from the store. References, by which a client could reach more than before, are in references.go.
//
// Source: concepts.txt, gardener-admission-controller, "Admission webhook handlers".
package restriction

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is a request that is to be admitted.
type Request struct {
	User      user.Info
	Operation admissionv1.Operation
	// Resource is with a slash and the subresource, if it is for one: "gardenlets/status".
	Resource schema.GroupResource
	// Namespace and Name are those of the object. An object whose name will be generated has none.
	Namespace, Name string
	// Object is what is to be stored; nil in a deletion. Old is what is stored; nil in a creation.
	Object, Old client.Object
}

// WithSubresource returns a resource as in Request and Rule. The subresource may be empty.
func WithSubresource(resource schema.GroupResource, subresource string) schema.GroupResource {
	if subresource != "" {
		resource.Resource += "/" + subresource
	}
	return resource
}

// Rule says for which requests a decision is needed. The resource may be a subresource, as in Request.
type Rule struct {
	Resource   schema.GroupVersionResource
	Operations []admissionv1.Operation
}

// Refusal is why a request is refused. Other errors do not exist.
type Refusal struct {
	// Code is the HTTP status code of the answer.
	Code    int32
	message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.message }

func refuse(code int32, format string, args ...any) error {
	return &Refusal{Code: code, message: fmt.Sprintf(format, args...)}
}

func forbid(format string, args ...any) error { return refuse(http.StatusForbidden, format, args...) }

// Values are what decisions need.
type Values struct {
	// Garden reads what objects refer to. It must know objects that were written a moment ago.
	Garden client.Reader
	// KubeAPI reads ConfigMaps of the garden.
	KubeAPI client.Reader
	// Exists reports whether the object of a creation exists already, which is refused.
	Exists func(context.Context, *Request) bool
	Clock  clock.PassiveClock
}

// table has a rule and the decision for each resource. A client of type C asks.
type table[C any] []entry[C]

type entry[C any] struct {
	Rule
	decide func(ctx context.Context, v *Values, of C, r *Request) error
}

func (t table[C]) rules() []Rule {
	rules := make([]Rule, len(t))
	for i, e := range t {
		rules[i] = e.Rule
	}
	return rules
}

// find returns the decision for a resource and operation.
func (t table[C]) find(r *Request) (func(context.Context, *Values, C, *Request) error, error) {
	at := slices.IndexFunc(t, func(e entry[C]) bool { return e.Resource.GroupResource() == r.Resource })
	if at < 0 {
		return nil, refuse(http.StatusBadRequest, "unexpected resource %s", r.Resource)
	}
	if !slices.Contains(t[at].Operations, r.Operation) {
		return nil, refuse(http.StatusBadRequest, "unexpected operation %s of %s", r.Operation, r.Resource)
	}
	return t[at].decide, nil
}

// typed makes a decision of one about objects of a kind.
func typed[C any, T client.Object](decide func(ctx context.Context, v *Values, of C, r *Request, obj T) error) func(context.Context, *Values, C, *Request) error {
	return func(ctx context.Context, v *Values, of C, r *Request) error {
		obj, ok := r.Object.(T)
		if !ok {
			return refuse(http.StatusBadRequest, "unexpected object %T for %s", r.Object, r.Resource)
		}
		return decide(ctx, v, of, r, obj)
	}
}

// Operations that rules are for.
var (
	creations          = []admissionv1.Operation{admissionv1.Create}
	updates            = []admissionv1.Operation{admissionv1.Update}
	creationsOrUpdates = []admissionv1.Operation{admissionv1.Create, admissionv1.Update}
)

// read reads an object that a decision needs, and refuses with a code if it does not exist. Other failures are internal errors.
func (v *Values) read(ctx context.Context, key client.ObjectKey, obj client.Object, missing int32) error {
	if key.Name == "" { // which clients do not send
		return refuse(missing, "%s without a name does not exist", kindOf(obj))
	}
	err := v.Garden.Get(ctx, key, obj)
	switch {
	case err == nil:
		return nil
	case client.IgnoreNotFound(err) == nil:
		return refuse(missing, "%s %s does not exist", kindOf(obj), shown(key))
	}
	return refuse(http.StatusInternalServerError, "read %s %s: %v", kindOf(obj), shown(key), err)
}
