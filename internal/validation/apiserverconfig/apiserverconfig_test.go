package apiserverconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestAdmissionPlugin(t *testing.T) {
	const file = "/etc/kubernetes/theirs.yaml"
	const webhookFile = `{"kind":"WebhookAdmissionConfiguration","apiVersion":"apiserver.config.k8s.io/v1","kubeConfigFile":"` + file + `"}`
	const rateLimit = `{"kind":"Configuration","apiVersion":"eventratelimit.admission.k8s.io/v1alpha1",`
	const tolerations = `{"kind":"Configuration","apiVersion":"podtolerationrestriction.admission.k8s.io/v1alpha1",`
	const security = `{"kind":"PodSecurityConfiguration","apiVersion":"pod-security.admission.config.k8s.io/v1",`
	const invalid = "FieldValueInvalid plugin.config"
	for name, tc := range map[string]struct {
		plugin     string
		kubeconfig string
		config     string
		want       string   // what is handed on
		errs       []string // by type and path
	}{
		"none":                   {plugin: "AlwaysPullImages"},
		"for one that has none":  {plugin: "AlwaysPullImages", config: "{}", errs: []string{"FieldValueForbidden plugin.config"}},
		"for one not known":      {plugin: "Unheard", config: "{}", errs: []string{"FieldValueForbidden plugin.config"}},
		"kubeconfig for no one":  {plugin: "PodNodeSelector", kubeconfig: file, errs: []string{"FieldValueForbidden plugin.kubeconfigSecretName"}},
		"null":                   {plugin: "PodNodeSelector", config: "null"},
		"list":                   {plugin: "PodNodeSelector", config: "[]", errs: []string{invalid}},
		"text":                   {plugin: "PodNodeSelector", config: "later", errs: []string{invalid}},
		"no YAML":                {plugin: "PodNodeSelector", config: "a: [", errs: []string{invalid}},
		"key twice":              {plugin: "PodNodeSelector", config: "podNodeSelectorPluginConfig: {}\npodNodeSelectorPluginConfig: {}", errs: []string{invalid}},
		"key in another case":    {plugin: "PodNodeSelector", config: `{"PodNodeSelectorPluginConfig":{}}`, errs: []string{invalid}},
		"node selector":          {plugin: "PodNodeSelector", config: "podNodeSelectorPluginConfig: {a: b=c}", want: `{"podNodeSelectorPluginConfig":{"a":"b=c"}}`},
		"node selector of lists": {plugin: "PodNodeSelector", config: "podNodeSelectorPluginConfig: {a: []}", errs: []string{invalid}},
		"limit ranger reads none, but may have one": {plugin: "LimitRanger", config: "a: b"},

		"webhooks":                           {plugin: "ValidatingAdmissionWebhook"},
		"webhooks with a kubeconfig":         {plugin: "MutatingAdmissionWebhook", kubeconfig: file, want: webhookFile},
		"webhooks with a path, not ours":     {plugin: "ValidatingAdmissionWebhook", kubeconfig: file, config: strings.Replace(webhookFile, file, "/x", 1), want: webhookFile},
		"webhooks with a path only":          {plugin: "ValidatingAdmissionWebhook", config: strings.Replace(webhookFile, file, "/x", 1)},
		"webhooks, old version":              {plugin: "ValidatingAdmissionWebhook", kubeconfig: file, config: `{"kind":"WebhookAdmission","apiVersion":"apiserver.config.k8s.io/v1alpha1"}`, want: webhookFile},
		"webhooks without kind":              {plugin: "ValidatingAdmissionWebhook", kubeconfig: file, config: `{}`, want: webhookFile},
		"webhooks of another kind":           {plugin: "ValidatingAdmissionWebhook", kubeconfig: file, config: `{"kind":"Secret","apiVersion":"v1"}`, errs: []string{invalid}},
		"webhooks from a directory":          {plugin: "ValidatingAdmissionWebhook", kubeconfig: file, config: `{"staticManifestsDir":"/x"}`, errs: []string{invalid}},
		"webhooks with a path in other case": {plugin: "ValidatingAdmissionWebhook", kubeconfig: file, config: `{"KubeConfigFile":"/x"}`, errs: []string{invalid}},

		"images": {plugin: "ImagePolicyWebhook", kubeconfig: file, want: `{"imagePolicy":{"kubeConfigFile":"` + file + `"}}`},
		"images with all": {
			plugin: "ImagePolicyWebhook", kubeconfig: file, config: "imagePolicy: {kubeConfigFile: /x, allowTTL: 1800, denyTTL: -1, retryBackoff: 300000, defaultAllow: true}",
			want: `{"imagePolicy":{"kubeConfigFile":"` + file + `","allowTTL":1800,"denyTTL":-1,"retryBackoff":300000,"defaultAllow":true}}`,
		},
		"images without a kubeconfig":      {plugin: "ImagePolicyWebhook", config: "imagePolicy: {kubeConfigFile: /x}", errs: []string{"FieldValueRequired plugin.kubeconfigSecretName"}},
		"images with a path in other case": {plugin: "ImagePolicyWebhook", kubeconfig: file, config: "imagePolicy: {kubeConfigFile: a, KUBECONFIGFILE: /x}", errs: []string{invalid}},
		"images, all in other case":        {plugin: "ImagePolicyWebhook", kubeconfig: file, config: "ImagePolicy: {kubeConfigFile: /x}", errs: []string{invalid}},
		"images out of bounds": {
			plugin: "ImagePolicyWebhook", kubeconfig: file, config: "imagePolicy: {allowTTL: 1801, denyTTL: -2, retryBackoff: 300001}",
			errs: []string{invalid + ".imagePolicy.allowTTL", invalid + ".imagePolicy.denyTTL", invalid + ".imagePolicy.retryBackoff"},
		},

		"events":               {plugin: "EventRateLimit", config: rateLimit + `"limits":[{"type":"Server","qps":1,"burst":2}]}`, want: rateLimit + `"limits":[{"type":"Server","qps":1,"burst":2}]}`},
		"events without any":   {plugin: "EventRateLimit", errs: []string{"FieldValueRequired plugin.config"}},
		"events without limit": {plugin: "EventRateLimit", config: rateLimit + `"limits":[]}`, errs: []string{"FieldValueRequired plugin.config.limits"}},
		"events, all wrong": {plugin: "EventRateLimit", config: `{"limits":[{"type":"Some","cacheSize":-1}]}`, errs: []string{
			invalid, "FieldValueNotSupported plugin.config.limits[0].type", invalid + ".limits[0].qps", invalid + ".limits[0].burst", invalid + ".limits[0].cacheSize",
		}},

		"tolerations": {
			plugin: "PodTolerationRestriction", config: tolerations + `"default":[{"key":"a","value":"b"},{"operator":"Exists","effect":"NoExecute","tolerationSeconds":3}]}`,
			want: tolerations + `"default":[{"key":"a","value":"b"},{"operator":"Exists","effect":"NoExecute","tolerationSeconds":3}]}`,
		},
		"tolerations, all wrong": {
			plugin: "PodTolerationRestriction",
			config: tolerations + `"default":[{"key":"a b","value":"c d"},{"operator":"Exists","value":"x","effect":"Never"}],"whitelist":[{},{"key":"a","operator":"Lt"},{"key":"a","tolerationSeconds":1}]}`,
			errs: []string{
				invalid + ".default[0].key", invalid + ".default[0].value", invalid + ".default[1].value", "FieldValueNotSupported plugin.config.default[1].effect",
				invalid + ".whitelist[0].operator", "FieldValueNotSupported plugin.config.whitelist[1].operator", invalid + ".whitelist[2].effect",
			},
		},

		"security": {
			plugin: "PodSecurity", config: strings.Replace(security, "/v1", "/v1beta1", 1) + `"defaults":{"enforce":"baseline","enforce-version":"latest"},"exemptions":{"namespaces":["a"]}}`,
			want: security + `"defaults":{"enforce":"baseline","enforce-version":"latest"},"exemptions":{"namespaces":["a","kube-system"]}}`,
		},
		"security without exemptions": {plugin: "PodSecurity", config: security + `"defaults":{"enforce":"restricted"}}`, want: security + `"defaults":{"enforce":"restricted"},"exemptions":{"namespaces":["kube-system"]}}`},
		"security that exempts kube-system": {
			plugin: "PodSecurity", config: security + `"defaults":{},"exemptions":{"namespaces":["kube-system"]}}`,
			want: security + `"defaults":{},"exemptions":{"namespaces":["kube-system"]}}`,
		},
		"security of another kind": {plugin: "PodSecurity", config: `{"defaults":{}}`, errs: []string{invalid}},
		"security with unknown":    {plugin: "PodSecurity", config: security + `"defaults":{"enforced":"baseline"}}`, errs: []string{invalid}},
		"security, all wrong": {plugin: "PodSecurity", config: security + `"defaults":{"enforce":"some","audit-version":"1"},"exemptions":{"namespaces":["A b"]}}`, errs: []string{
			invalid, invalid, invalid,
		}},

		"quota": {
			plugin: "ResourceQuota", config: `{"apiVersion":"resourcequota.admission.k8s.io/v1beta1","kind":"Configuration","limitedResources":[{"resource":"pods"}]}`,
			want: `{"kind":"ResourceQuotaConfiguration","apiVersion":"apiserver.config.k8s.io/v1","limitedResources":[{"resource":"pods"}]}`,
		},
		"quota, all wrong": {plugin: "ResourceQuota", config: `{"limitedResources":[{}]}`, errs: []string{invalid, "FieldValueRequired plugin.config.limitedResources[0].resource"}},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := corev1beta1.AdmissionPlugin{Name: tc.plugin}
			if tc.config != "" {
				plugin.Config = &runtime.RawExtension{Raw: []byte(tc.config)}
			}
			got, errs := AdmissionPlugin(plugin, tc.kubeconfig, field.NewPath("plugin"))
			validationtest.Expect(t, errs, tc.errs...)
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("handed on (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAuditPolicy(t *testing.T) {
	const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
	for name, tc := range map[string]struct {
		text string
		errs []string
	}{
		"usual":           {text: head + "omitStages: [RequestReceived]\nrules: [{level: Metadata, resources: [{group: '', resources: [secrets]}]}]"},
		"unknown level":   {head + "rules: [{level: All}]", []string{"FieldValueNotSupported rules[0].level"}},
		"unknown field":   {head + "rules: [{level: None, resource: []}]", []string{"FieldValueForbidden Policy"}},
		"no rules":        {head, []string{"FieldValueRequired rules"}},
		"no version":      {"kind: Policy", []string{"FieldValueForbidden kind"}},
		"old version":     {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy", []string{"FieldValueForbidden kind"}},
		"of another kind": {"apiVersion: audit.k8s.io/v1\nkind: Event", []string{"FieldValueForbidden kind"}},
		"no kind":         {"rules: []", []string{"FieldValueForbidden kind"}},
		"no YAML":         {"rules: [", []string{"FieldValueForbidden Policy"}},
		"key twice":       {head + "rules: [{level: None, level: Metadata}]", []string{"FieldValueForbidden Policy"}},
	} {
		t.Run(name, func(t *testing.T) { validationtest.Expect(t, AuditPolicy(tc.text), tc.errs...) })
	}
}

func TestAuthentication(t *testing.T) {
	const beta = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"
	const ga = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	const rest = ", audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: ''}}\n"
	const jwt = "jwt:\n- issuer: {url: 'https://issuer.example'"
	for name, tc := range map[string]struct {
		kubernetes, text string
		errs             []string
	}{
		"usual":                         {"1.32.1", beta + jwt + rest, nil},
		"final version":                 {"1.34.0", ga + jwt + rest, nil},
		"final version, too early":      {"1.33.9", ga + jwt + rest, []string{"FieldValueForbidden kind"}},
		"egress":                        {"1.34.0", ga + jwt + ", egressSelectorType: cluster" + rest, nil},
		"egress, too early":             {"1.33.9", beta + jwt + ", egressSelectorType: cluster" + rest, []string{"FieldValueForbidden jwt[0].issuer.egressSelectorType"}},
		"issuer of service accounts":    {"1.34.0", ga + strings.Replace(jwt, "issuer.example", "api.example", 1) + rest, []string{"FieldValueInvalid jwt[0].issuer.url"}},
		"HTTP":                          {"1.34.0", ga + strings.Replace(jwt, "https:", "http:", 1) + rest, []string{"FieldValueInvalid jwt[0].issuer.url"}},
		"authority from a file":         {"1.34.0", ga + jwt + ", certificateAuthority: /srv/x" + rest, []string{"FieldValueInvalid jwt[0].issuer.certificateAuthority"}},
		"unknown field":                 {"1.34.0", ga + jwt + ", certificateAuthorityFile: /srv/x" + rest, []string{"FieldValueForbidden AuthenticationConfiguration"}},
		"expression that does not work": {"1.34.0", ga + jwt + ", audiences: [a]}\n  claimMappings: {username: {expression: 'claims.'}}\n", []string{"FieldValueInvalid jwt[0].claimMappings.username.expression"}},
		"of another kind":               {"1.34.0", strings.Replace(ga, "Authentication", "Authorization", 1), []string{"FieldValueForbidden kind"}},
		"empty":                         {"1.34.0", "{}", []string{"FieldValueForbidden kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			validationtest.Expect(t, Authentication(tc.text, version.MustParseGeneric(tc.kubernetes), []string{"https://api.example"}), tc.errs...)
		})
	}
}

func TestConfiguresAnonymous(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: AuthenticationConfiguration":        false,
		"anonymous: null":                          false,
		"anonymous: {enabled: false}":              true,
		"anonymous: {}":                            true,
		"jwt: [{issuer: {url: https://a.b.test}}]": false,
		"anonymous: [":                             false,
	} {
		if got := ConfiguresAnonymous(text); got != want {
			t.Errorf("ConfiguresAnonymous(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestSelectsEgress(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: AuthenticationConfiguration":                                                 false,
		"jwt: [{issuer: {url: https://a.b.test}}, {issuer: {egressSelectorType: cluster}}]": true,
		"jwt: [{issuer: {egressSelectorType: \"\"}}]":                                       false,
		"jwt: [": false,
	} {
		if got := SelectsEgress(text); got != want {
			t.Errorf("SelectsEgress(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestAuthorization(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	webhook := func(name, more string) string {
		return "- type: Webhook\n  name: " + name + "\n  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny" + more + "}\n"
	}
	for name, tc := range map[string]struct {
		text string
		errs []string
	}{
		"usual":                 {head + webhook("a", "") + webhook("b", ", matchConditions: [{expression: request.user == 'x'}]"), nil},
		"path":                  {head + webhook("a", ", connectionInfo: {type: KubeConfigFile, kubeConfigFile: /srv/x}"), []string{"FieldValueForbidden authorizers[0].webhook.connectionInfo"}},
		"in the cluster":        {head + webhook("a", ", connectionInfo: {type: InClusterConfig}"), []string{"FieldValueForbidden authorizers[0].webhook.connectionInfo"}},
		"another type":          {head + "- {type: RBAC, name: a}", []string{"FieldValueNotSupported authorizers[0].type"}},
		"all allowed":           {head + "- {type: AlwaysAllow, name: a}", []string{"FieldValueNotSupported authorizers[0].type"}},
		"without a kubeconfig":  {head + webhook("c", ""), []string{"FieldValueInvalid authorizers[0].name"}},
		"name of ours":          {head + webhook("node-agent-authorizer", ""), []string{"FieldValueInvalid authorizers[0].name"}},
		"name twice":            {head + webhook("a", "") + webhook("a", ""), []string{"FieldValueDuplicate authorizers[1].name"}},
		"no name":               {head + webhook("''", ""), []string{"FieldValueRequired authorizers[0].name"}},
		"name with a path":      {head + webhook("../a", ""), []string{"FieldValueInvalid authorizers[0].name", "FieldValueInvalid authorizers[0].name"}},
		"no webhook":            {head + "- {type: Webhook, name: a}", []string{"FieldValueRequired authorizers[0].webhook"}},
		"none":                  {strings.TrimSuffix(head, "authorizers:\n"), []string{"FieldValueRequired authorizers"}},
		"unknown field":         {head + webhook("a", ", kubeConfigFile: /srv/x"), []string{"FieldValueForbidden AuthorizationConfiguration"}},
		"condition that is bad": {head + webhook("a", ", matchConditions: [{expression: 'request.'}]"), []string{"FieldValueInvalid authorizers[0].matchConditions[0].expression"}},
	} {
		t.Run(name, func(t *testing.T) {
			validationtest.Expect(t, Authorization(tc.text, []string{"a", "b", "node-agent-authorizer"}), tc.errs...)
		})
	}
}
