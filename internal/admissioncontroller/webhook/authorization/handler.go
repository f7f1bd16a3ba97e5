// Package authorization serves authorizers as authorization webhooks of a kube-apiserver: SubjectAccessReviews come in, and are sent back
// with a decision.
//
// Source: concepts.txt, gardener-admission-controller, "Authorization webhook handlers".
package authorization

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// maxBytes limits the size of a request.
	maxBytes = 1 << 20
	// timeout limits a decision. It is also that of kube-apiservers.
	timeout = 10 * time.Second
)

// Handler serves an authorizer.
type Handler struct {
	Authorizer authorizer.Authorizer
	Log        logr.Logger
}

// failure is why there is no decision, with a code like those of HTTP.
type failure struct {
	code int
	err  error
}

// ServeHTTP answers a SubjectAccessReview. The status is always 200; a failure is part of the answer, and the kube-apiserver has no
// decision then.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := authorizationv1.SchemeGroupVersion.String()
	var status authorizationv1.SubjectAccessReviewStatus
	if review, failed := read(w, r); failed != nil {
		status.EvaluationError = fmt.Sprintf("%d %v", failed.code, failed.err)
		h.Log.Info("Request cannot be read", "reason", status.EvaluationError)
	} else {
		version = review.APIVersion
		status = h.decide(r.Context(), &review.Spec)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(response{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, Status: status,
	}); err != nil {
		h.Log.V(1).Info("Writing the response failed", "reason", err.Error()) // the client has closed the connection
	}
}

// response is a SubjectAccessReview without what the client knows. It has the same fields in both versions.
type response struct {
	metav1.TypeMeta `json:",inline"`

	Status authorizationv1.SubjectAccessReviewStatus `json:"status"`
}

const kind = "SubjectAccessReview"

// read returns the review of a request, in version v1, but with the version that it was sent in.
func read(w http.ResponseWriter, r *http.Request) (*authorizationv1.SubjectAccessReview, *failure) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, &failure{http.StatusUnprocessableEntity, errors.New("request body is empty")}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err != nil {
		return nil, &failure{http.StatusBadRequest, err}
	}
	if len(body) == 0 {
		return nil, &failure{http.StatusUnprocessableEntity, errors.New("request body is empty")}
	}
	if contentType := r.Header.Get("Content-Type"); contentType != "application/json" {
		return nil, &failure{http.StatusBadRequest, fmt.Errorf("contentType=%s, expected application/json", contentType)}
	}
	review, err := decode(body)
	if err != nil {
		return nil, &failure{http.StatusBadRequest, err}
	}
	return review, nil
}

// decode reads either version. Only the groups of the user have another name in v1beta1, so that both are read at once.
func decode(body []byte) (*authorizationv1.SubjectAccessReview, error) {
	both := struct {
		authorizationv1.SubjectAccessReview `json:",inline"`

		Spec struct {
			authorizationv1.SubjectAccessReviewSpec `json:",inline"`

			Group []string `json:"group"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(body, &both); err != nil {
		return nil, err
	}
	review := &both.SubjectAccessReview
	review.Spec = both.Spec.SubjectAccessReviewSpec
	switch {
	case review.Kind != kind:
	case review.APIVersion == authorizationv1.SchemeGroupVersion.String():
		return review, nil
	case review.APIVersion == authorizationv1beta1.SchemeGroupVersion.String():
		review.Spec.Groups = both.Spec.Group
		return review, nil
	}
	return nil, fmt.Errorf("%s %q is not a SubjectAccessReview of authorization.k8s.io, v1 or v1beta1", review.APIVersion, review.Kind)
}

// decide asks the authorizer. A panic ends one request only.
func (h *Handler) decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus) {
	log := h.Log.WithValues("user", spec.User)
	if a := spec.ResourceAttributes; a != nil {
		log = log.WithValues("verb", a.Verb, "group", a.Group, "resource", a.Resource, "subresource", a.Subresource, "namespace", a.Namespace, "name", a.Name)
	}
	defer func() {
		if cause := recover(); cause != nil {
			log.Error(fmt.Errorf("panic: %v", cause), "Deciding failed", "stack", string(debug.Stack()))
			status = authorizationv1.SubjectAccessReviewStatus{EvaluationError: fmt.Sprintf("%d panic: %v", http.StatusInternalServerError, cause)}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	decision, reason, err := h.Authorizer.Authorize(ctx, attributesOf(spec))
	switch {
	case err != nil:
		log.Error(err, "Deciding failed")
		return authorizationv1.SubjectAccessReviewStatus{EvaluationError: fmt.Sprintf("%d %v", http.StatusInternalServerError, err)}
	case decision == authorizer.DecisionAllow:
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: reason}
	case decision == authorizer.DecisionDeny:
		return authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: reason}
	}
	if reason != "" {
		log.Info("Request is not allowed", "reason", reason)
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: reason}
}
