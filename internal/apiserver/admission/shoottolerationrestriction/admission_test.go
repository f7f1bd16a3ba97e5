package shoottolerationrestriction_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"gardener.cloud/gardener/api/config/admission/shoottolerationrestriction/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/shoottolerationrestriction"
)

func tolerations(texts ...string) []corev1beta1.Toleration {
	var out []corev1beta1.Toleration
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		t := corev1beta1.Toleration{Key: key}
		if ok {
			t.Value = &value
		}
		out = append(out, t)
	}
	return out
}

func shoot(texts ...string) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s"}, Spec: corev1beta1.ShootSpec{Tolerations: tolerations(texts...)}}
}

func plugin(t *testing.T) *shoottolerationrestriction.Plugin {
	p := shoottolerationrestriction.New(&v1alpha1.Configuration{Defaults: tolerations("for-all"), Whitelist: tolerations("for-all", "free")})
	p.GardenCache = admissiontest.Reader(t, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{
		Namespace:   new("garden-dev"),
		Tolerations: &corev1beta1.ProjectTolerations{Defaults: tolerations("default=yes"), Whitelist: tolerations("default", "exact=one")},
	}})
	return p
}

func TestAdmit(t *testing.T) {
	for name, tc := range map[string]struct{ obj, want *corev1beta1.Shoot }{
		"without any":          {shoot(), shoot("default=yes", "for-all")},
		"with one of the same": {shoot("default=no"), shoot("default=no", "for-all")},
		"of no project's":      {&corev1beta1.Shoot{}, &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Tolerations: tolerations("for-all")}}},
		"with one of its own":  {shoot("own"), shoot("own", "default=yes", "for-all")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := plugin(t).Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: tc.obj}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.obj); diff != "" {
				t.Errorf("Admit() (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an update adds none", func(t *testing.T) {
		obj := shoot()
		if err := plugin(t).Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: obj, Old: shoot()}.Attributes(), nil); err != nil || obj.Spec.Tolerations != nil {
			t.Errorf("Admit() = %v with %v, want no tolerations", err, obj.Spec.Tolerations)
		}
	})
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		obj, old *corev1beta1.Shoot
		want     metav1.StatusReason
	}{
		"none":                             {obj: shoot()},
		"that of the project":              {obj: shoot("exact=one")},
		"with another value":               {obj: shoot("exact=two"), want: metav1.StatusReasonForbidden},
		"without the value":                {obj: shoot("exact"), want: metav1.StatusReasonForbidden},
		"with a value where any is fine":   {obj: shoot("default=x", "free=y")},
		"not listed":                       {obj: shoot("other"), want: metav1.StatusReasonForbidden},
		"not listed, but was there before": {obj: shoot("other", "free"), old: shoot("other")},
		"not listed, and new":              {obj: shoot("other"), old: shoot("free"), want: metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request := admissiontest.Request{Resource: "shoots", Object: tc.obj}
			if tc.old != nil {
				request.Old = tc.old
			}
			err := plugin(t).Validate(t.Context(), request.Attributes(), nil)
			if admissiontest.Reason(err) != tc.want || err != nil && !strings.Contains(err.Error(), "spec.tolerations[0]") {
				t.Errorf("Validate() = %v, want reason %q with the path", err, tc.want)
			}
		})
	}
}

func TestConfiguration(t *testing.T) {
	const head = "apiVersion: shoottolerationrestriction.admission.gardener.cloud/v1alpha1\nkind: Configuration\n"
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"complete":    {head + "defaults: [{key: a}]\nwhitelist: [{key: a}]\n", true},
		"unknown key": {head + "whitelst: []\n", false},
		"invalid key": {head + "whitelist: [{key: \"a b\"}]\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := admission.NewPlugins()
			shoottolerationrestriction.Register(plugins)
			_, err := plugins.InitPlugin(shoottolerationrestriction.Name, strings.NewReader(tc.text), admission.PluginInitializers{initialize{t}})
			if (err == nil) != tc.ok {
				t.Errorf("the configuration gives %v, want ok %t", err, tc.ok)
			}
		})
	}
}

// initialize gives the plugin what it reads.
type initialize struct{ t *testing.T }

func (i initialize) Initialize(p admission.Interface) {
	p.(*shoottolerationrestriction.Plugin).Base = initializer.Base{
		GardenCache: admissiontest.Reader(i.t), KubeAPI: admissiontest.Reader(i.t), Authorizer: admissiontest.Denying(),
	}
}
