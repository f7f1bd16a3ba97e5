package authorization

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func decides(d authorizer.Decision, reason string, err error) authorizer.AuthorizerFunc {
	return func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return d, reason, err
	}
}

// unreadable is a body that breaks off.
type unreadable struct{}

func (unreadable) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestServeHTTP(t *testing.T) {
	const (
		v1      = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"a","groups":["g"],"resourceAttributes":{"verb":"get"}}}`
		v1beta1 = `{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","spec":{"user":"a","group":["g"],"resourceAttributes":{"verb":"get"}}}`
	)
	allow := decides(authorizer.DecisionAllow, "", nil)
	failed := func(text string) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{EvaluationError: text}
	}
	for name, tc := range map[string]struct {
		body        io.Reader
		contentType string
		authorizer  authorizer.AuthorizerFunc
		version     string
		want        authorizationv1.SubjectAccessReviewStatus
	}{
		"allowed": {strings.NewReader(v1), "", allow, "", authorizationv1.SubjectAccessReviewStatus{Allowed: true}},
		"denied": {
			strings.NewReader(v1), "", decides(authorizer.DecisionDeny, "because", nil), "",
			authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "because"},
		},
		"no opinion": {
			strings.NewReader(v1), "", decides(authorizer.DecisionNoOpinion, "because", nil), "",
			authorizationv1.SubjectAccessReviewStatus{Reason: "because"},
		},
		"an older version": {
			strings.NewReader(v1beta1), "", func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if cmp.Equal(a.GetUser().GetGroups(), []string{"g"}) {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", errors.New("the groups are missing")
			}, "authorization.k8s.io/v1beta1", authorizationv1.SubjectAccessReviewStatus{Allowed: true},
		},
		"an error": {strings.NewReader(v1), "", decides(authorizer.DecisionAllow, "", errors.New("no connection")), "", failed("500 no connection")},
		"a panic": {strings.NewReader(v1), "", func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			panic("index out of range")
		}, "", failed("500 panic: index out of range")},
		"no body":                 {nil, "", allow, "", failed("422 request body is empty")},
		"an empty body":           {strings.NewReader(""), "", allow, "", failed("422 request body is empty")},
		"a body that breaks off":  {unreadable{}, "", allow, "", failed("400 connection reset")},
		"a body that is too long": {strings.NewReader(`{"kind":"` + strings.Repeat("x", maxBytes)), "", allow, "", failed("400 http: request body too large")},
		"no content type":         {strings.NewReader(v1), "-", allow, "", failed("400 contentType=, expected application/json")},
		"another content type":    {strings.NewReader(v1), "application/foo", allow, "", failed("400 contentType=application/foo, expected application/json")},
		"a parameter of it":       {strings.NewReader(v1), "application/json; charset=utf-8", allow, "", failed("400 contentType=application/json; charset=utf-8, expected application/json")},
		"no JSON":                 {strings.NewReader("{"), "", allow, "", failed("400 unexpected end of JSON input")},
		"another kind": {
			strings.NewReader(`{"apiVersion":"v1","kind":"Pod"}`), "", allow, "",
			failed(`400 v1 "Pod" is not a SubjectAccessReview of authorization.k8s.io, v1 or v1beta1`),
		},
		"another version": {
			strings.NewReader(strings.Replace(v1, "/v1", "/v2", 1)), "", allow, "",
			failed(`400 authorization.k8s.io/v2 "SubjectAccessReview" is not a SubjectAccessReview of authorization.k8s.io, v1 or v1beta1`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", tc.body)
			switch tc.contentType {
			case "-":
			case "":
				request.Header.Set("Content-Type", "application/json")
			default:
				request.Header.Set("Content-Type", tc.contentType)
			}
			recorder := httptest.NewRecorder()
			(&Handler{Authorizer: tc.authorizer, Log: logr.Discard()}).ServeHTTP(recorder, request)
			got := authorizationv1.SubjectAccessReview{}
			if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v in %s", err, recorder.Body)
			}
			if tc.version == "" {
				tc.version = "authorization.k8s.io/v1"
			}
			if recorder.Code != http.StatusOK || got.Kind != "SubjectAccessReview" || got.APIVersion != tc.version {
				t.Errorf("status %d, kind %s of %s; want %s", recorder.Code, got.Kind, got.APIVersion, tc.version)
			}
			if diff := cmp.Diff(tc.want, got.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// A decision has a deadline, so that an API server that does not respond holds no requests.
func TestDeadline(t *testing.T) {
	handler := &Handler{Log: logr.Discard(), Authorizer: authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("there is no deadline")
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	handler.decide(t.Context(), &authorizationv1.SubjectAccessReviewSpec{})
}

func TestAttributes(t *testing.T) {
	got := attributesOf(&authorizationv1.SubjectAccessReviewSpec{
		User: "a", UID: "1", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "ns", Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status", Name: "n",
		},
	})
	want := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "a", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}, ResourceRequest: true,
		Namespace: "ns", Verb: "get", APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Subresource: "status", Name: "n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	got = attributesOf(&authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"}})
	want = authorizer.AttributesRecord{User: &user.DefaultInfo{Extra: map[string][]string{}}, Path: "/healthz", Verb: "get"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes of a path (-want +got):\n%s", diff)
	}
}

func TestSelectors(t *testing.T) {
	field := func(text string) fields.Requirements {
		if text == "" {
			return nil
		}
		return fields.ParseSelectorOrDie(text).Requirements()
	}
	label := func(text string) labels.Requirements {
		requirements, err := labels.ParseToRequirements(text)
		if err != nil {
			t.Fatal(err)
		}
		return requirements
	}
	text := func(requirements labels.Requirements) string {
		return labels.NewSelector().Add(requirements...).String()
	}
	type (
		f = authorizationv1.FieldSelectorAttributes
		l = authorizationv1.LabelSelectorAttributes
	)
	for name, tc := range map[string]struct {
		selector *f
		want     fields.Requirements
		wantErr  bool
	}{
		"none":               {nil, nil, false},
		"raw":                {&f{RawSelector: "a=b,c!=d"}, field("a=b,c!=d"), false},
		"raw, malformed":     {&f{RawSelector: "a"}, nil, true},
		"in":                 {&f{Requirements: requirements("a", "In", "b")}, field("a=b"), false},
		"not in":             {&f{Requirements: requirements("a", "NotIn", "b")}, field("a!=b"), false},
		"instead of raw":     {&f{RawSelector: "x=y", Requirements: requirements("a", "In", "b")}, field("a=b"), false},
		"instead of a bad":   {&f{RawSelector: "x", Requirements: requirements("a", "In", "b")}, field("a=b"), false},
		"several values":     {&f{Requirements: requirements("a", "In", "b", "c")}, nil, true},
		"exists":             {&f{Requirements: requirements("a", "Exists")}, nil, true},
		"unknown":            {&f{Requirements: requirements("a", "Like", "b")}, nil, true},
		"one bad of several": {&f{Requirements: append(requirements("a", "Exists"), requirements("c", "In", "d")...)}, field("c=d"), true},
	} {
		t.Run("field "+name, func(t *testing.T) {
			got, err := fieldRequirements(tc.selector)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.wantErr {
				t.Errorf("error %v; requirements (-want +got):\n%s", err, diff)
			}
		})
	}
	for name, tc := range map[string]struct {
		selector *l
		want     string
		wantErr  bool
	}{
		"none":               {nil, "", false},
		"raw":                {&l{RawSelector: "a=b,c notin (d),!e,f"}, "a=b,c notin (d),!e,f", false},
		"raw, malformed":     {&l{RawSelector: "a,,b"}, "", true},
		"in":                 {&l{Requirements: labelRequirement("a", "In", "b", "c")}, "a in (b,c)", false},
		"not in":             {&l{Requirements: labelRequirement("a", "NotIn", "b")}, "a notin (b)", false},
		"exists":             {&l{Requirements: labelRequirement("a", "Exists")}, "a", false},
		"does not exist":     {&l{Requirements: labelRequirement("a", "DoesNotExist")}, "!a", false},
		"instead of raw":     {&l{RawSelector: "x=y", Requirements: labelRequirement("a", "Exists")}, "a", false},
		"unknown":            {&l{Requirements: labelRequirement("a", "Like", "b")}, "", true},
		"no key":             {&l{Requirements: labelRequirement("a b", "Exists")}, "", true},
		"one bad of several": {&l{Requirements: append(labelRequirement("a", "In"), labelRequirement("c", "Exists")...)}, "c", true},
	} {
		t.Run("label "+name, func(t *testing.T) {
			got, err := labelRequirements(tc.selector)
			if diff := cmp.Diff(text(label(tc.want)), text(got)); diff != "" || (err != nil) != tc.wantErr {
				t.Errorf("error %v; requirements (-want +got):\n%s", err, diff)
			}
		})
	}
}

func requirements(key, operator string, values ...string) []metav1.FieldSelectorRequirement {
	return []metav1.FieldSelectorRequirement{{Key: key, Operator: metav1.FieldSelectorOperator(operator), Values: values}}
}

func labelRequirement(key, operator string, values ...string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: values}}
}
