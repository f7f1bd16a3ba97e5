package resourcesize

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/rejections"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

type limit = admissioncontrollerconfigv1alpha1.ResourceLimit

func newLimit(group, version, resources, size string, count *int64) limit {
	l := limit{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resources}, Count: count}
	if size != "" {
		l.Size = new(resource.MustParse(size))
	}
	return l
}

var (
	logOnly = admissioncontrollerconfigv1alpha1.AdmissionModeLog
	block   = admissioncontrollerconfigv1alpha1.AdmissionModeBlock
)

func TestHandle(t *testing.T) {
	long := strings.Repeat("x", 1000)
	small := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "small"}}
	large := small.DeepCopy()
	large.Annotations = map[string]string{"a": long}
	withStatus := small.DeepCopy()
	withStatus.Status.TechnicalID = long
	withStatus.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: long}}
	project := func(name string) *corev1beta1.Project {
		return &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	largeProject := project("new")
	largeProject.Annotations = large.Annotations
	create := func(object client.Object) admission.Request { return webhooktest.Create(t, "shoots", object) }
	ofProject := func(object client.Object) admission.Request { return webhooktest.Create(t, "projects", object) }
	update := func(object client.Object) admission.Request {
		return webhooktest.Update(t, "shoots", object, small)
	}
	by := func(request admission.Request, user string, groups ...string) admission.Request {
		request.UserInfo.Username, request.UserInfo.Groups = user, groups
		return request
	}
	shoots := newLimit("core.gardener.cloud", "*", "shoots", "900", nil)
	projects := func(count int64) limit { return newLimit("*", "v1beta1", "projects", "900", &count) }
	subject := func(kind, namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}
	}
	const denied = http.StatusForbidden
	for name, tc := range map[string]struct {
		request      admission.Request
		limits       []limit
		unrestricted []rbacv1.Subject
		mode         *admissioncontrollerconfigv1alpha1.ResourceAdmissionWebhookMode
		unreachable  bool
		code         int
		message      string
	}{
		"small":                                {request: create(small), limits: []limit{shoots}, code: webhooktest.Allowed},
		"large":                                {request: create(large), limits: []limit{shoots}, code: denied, message: "no more than 900"},
		"large, updated":                       {request: update(large), limits: []limit{shoots}, mode: &block, code: denied, message: "bytes"},
		"large, logged":                        {request: create(large), limits: []limit{shoots}, mode: &logOnly, code: webhooktest.Allowed},
		"status and managed fields":            {request: update(withStatus), limits: []limit{shoots}, code: webhooktest.Allowed},
		"deletion":                             {request: webhooktest.Delete(t, "shoots", small), limits: []limit{shoots}, code: http.StatusBadRequest, message: "DELETE"},
		"no limits":                            {request: create(large), code: webhooktest.Allowed},
		"limit of another resource":            {request: create(large), limits: []limit{newLimit("*", "*", "secrets", "1", nil)}, code: webhooktest.Allowed},
		"limit of another group":               {request: create(large), limits: []limit{newLimit("", "*", "shoots", "1", nil)}, code: webhooktest.Allowed},
		"limit of another version":             {request: create(large), limits: []limit{newLimit("*", "v1", "shoots", "1", nil)}, code: webhooktest.Allowed},
		"limit of everything":                  {request: create(large), limits: []limit{newLimit("*", "*", "*", "900", nil)}, code: denied},
		"first limit counts":                   {request: create(large), limits: []limit{newLimit("*", "*", "shoots", "9k", nil), shoots}, code: webhooktest.Allowed},
		"not decodable":                        {request: create(nil), limits: []limit{newLimit("*", "*", "*", "0", nil)}, code: denied, message: "measure"},
		"user":                                 {request: by(create(large), "a"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("User", "", "a")}, code: webhooktest.Allowed},
		"another user":                         {request: by(create(large), "b"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("User", "", "a")}, code: denied},
		"any user":                             {request: by(create(large), "b"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("User", "", "*")}, code: webhooktest.Allowed},
		"group":                                {request: by(create(large), "b", "c", "a"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("Group", "", "a")}, code: webhooktest.Allowed},
		"another group":                        {request: by(create(large), "a", "b"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("Group", "", "a")}, code: denied},
		"any group":                            {request: by(create(large), "a"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("Group", "", "*")}, code: webhooktest.Allowed},
		"service account":                      {request: by(create(large), "system:serviceaccount:n:a"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("ServiceAccount", "n", "a")}, code: webhooktest.Allowed},
		"service account elsewhere":            {request: by(create(large), "system:serviceaccount:m:a"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("ServiceAccount", "n", "a")}, code: denied},
		"any service account of the namespace": {request: by(create(large), "system:serviceaccount:n:b"), limits: []limit{shoots}, unrestricted: []rbacv1.Subject{subject("ServiceAccount", "n", "*")}, code: webhooktest.Allowed},
		"service account, as user and group": {
			request: by(create(large), "system:serviceaccount:n:a", "system:serviceaccounts"), limits: []limit{shoots}, code: denied,
			unrestricted: []rbacv1.Subject{subject("User", "", "*"), subject("User", "", "system:serviceaccount:n:a"), subject("Group", "", "system:serviceaccounts")},
		},
		"fewer than the count":        {request: ofProject(project("new")), limits: []limit{projects(3)}, code: webhooktest.Allowed},
		"as many as the count":        {request: ofProject(project("new")), limits: []limit{projects(2)}, code: denied, message: "no more than 2 objects of kind Project"},
		"more than the count":         {request: ofProject(project("new")), limits: []limit{projects(1)}, code: denied, message: "no more than 1"},
		"count of zero":               {request: ofProject(project("new")), limits: []limit{projects(0)}, code: denied, message: "no more than 0"},
		"count, logged":               {request: ofProject(project("new")), limits: []limit{projects(2)}, mode: &logOnly, code: webhooktest.Allowed},
		"fewer, but large":            {request: ofProject(largeProject), limits: []limit{projects(3)}, code: denied, message: "bytes"},
		"count before size":           {request: ofProject(largeProject), limits: []limit{projects(1)}, code: denied, message: "objects of kind Project"},
		"count, updated":              {request: webhooktest.Update(t, "projects", project("a"), project("a")), limits: []limit{projects(0)}, code: webhooktest.Allowed},
		"count in a namespace":        {request: create(small), limits: []limit{newLimit("*", "*", "*", "", new(int64(0)))}, code: webhooktest.Allowed},
		"count of Namespaces":         {request: ofNamespace(t), limits: []limit{newLimit("", "*", "namespaces", "", new(int64(0)))}, code: denied, message: "objects of kind Namespace"},
		"objects cannot be counted":   {request: ofProject(project("new")), limits: []limit{projects(3)}, unreachable: true, code: denied, message: "unreachable"},
		"only the size, as unlimited": {request: ofProject(project("new")), limits: []limit{newLimit("*", "*", "projects", "900", nil)}, unreachable: true, code: webhooktest.Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			rejected, err := rejections.New(registry)
			if err != nil {
				t.Fatal(err)
			}
			h := &Handler{
				Config:   &admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{Limits: tc.limits, UnrestrictedSubjects: tc.unrestricted, OperationMode: tc.mode},
				Reader:   webhooktest.Garden(t, project("a"), project("b")).Build(),
				Rejected: rejected,
			}
			if tc.unreachable {
				h.Reader = webhooktest.Unreachable(t)
			}
			webhooktest.Expect(t, h.Handle(t.Context(), tc.request), tc.code, tc.message)
			count, err := testutil.GatherAndCount(registry)
			if counted := count == 1; err != nil || counted != (tc.code == denied) {
				t.Errorf("it is counted: %v (%v)", counted, err)
			}
		})
	}
	t.Run("not configured", func(t *testing.T) {
		webhooktest.Expect(t, (&Handler{}).Handle(t.Context(), create(large)), webhooktest.Allowed)
	})
}

// ofNamespace is a request to create a Namespace as an API server sends it: it has a namespace.
func ofNamespace(t *testing.T) admission.Request {
	t.Helper()
	request := webhooktest.Create(t, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	request.Namespace = "n"
	return request
}

// The resource that the client has used counts, not the one that the webhook is registered for.
func TestRequestedResource(t *testing.T) {
	request := webhooktest.Create(t, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}})
	request.RequestResource = &metav1.GroupVersionResource{Group: "older.example", Version: "v1alpha1", Resource: "secrets"}
	h := &Handler{Config: &admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{Limits: []limit{newLimit("", "v1", "secrets", "1", nil)}}}
	webhooktest.Expect(t, h.Handle(t.Context(), request), webhooktest.Allowed)
}

func TestMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	rejected, err := rejections.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	request := webhooktest.Create(t, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}})
	request.Operation = admissionv1.Update
	h := &Handler{Config: &admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{Limits: []limit{newLimit("", "v1", "secrets", "1", nil)}}, Rejected: rejected}
	webhooktest.Expect(t, h.Handle(t.Context(), request), http.StatusForbidden)
	const name = "gardener_admission_controller_rejected_resources_total"
	want := "# HELP " + name + " Number of resources that webhooks have refused.\n# TYPE " + name + " counter\n" +
		name + `{kind="Secret",namespace="n",operation="update",reason="Size Exceeded"} 1` + "\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestOwnSize(t *testing.T) {
	const want = `{"kind":"A","metadata":{"name":"a"},"spec":{"n":12345678901234567890}}`
	for name, raw := range map[string]string{
		"as it is":       want,
		"status":         strings.TrimSuffix(want, "}") + `,"status":{"a":"b"}}`,
		"managed fields": strings.Replace(want, `"name":"a"`, `"name":"a","managedFields":[{"manager":"m"}]`, 1),
		"spaces":         strings.ReplaceAll(want, ",", " ,\n "),
	} {
		if got, err := ownSize([]byte(raw)); got != int64(len(want)) || err != nil {
			t.Errorf("%s: %d (%v), want %d", name, got, err, len(want))
		}
	}
	if got, err := ownSize([]byte(`{"spec":{}}`)); got != int64(len(`{"spec":{}}`)) || err != nil {
		t.Errorf("without metadata: %d (%v)", got, err)
	}
}
