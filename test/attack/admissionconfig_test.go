package attack

import (
	"strings"
	"testing"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
)

// A configuration of an admission plugin must not name files of the seed, however it is written.
func TestPluginConfigurationNamesFilesOfTheSeed(t *testing.T) {
	const webhooks = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"
	for name, tc := range map[string]struct {
		plugin, config string
		secret         bool // there is a Secret with a good kubeconfig
	}{
		"webhooks":                          {"ValidatingAdmissionWebhook", webhooks + "kubeConfigFile: /srv/attacker", false},
		"webhooks, with a Secret":           {"MutatingAdmissionWebhook", webhooks + "kubeConfigFile: /srv/attacker", true},
		"webhooks, in another case":         {"ValidatingAdmissionWebhook", webhooks + "kubeconfigfile: /srv/attacker", true},
		"webhooks from a directory":         {"ValidatingAdmissionWebhook", webhooks + "staticManifestsDir: /srv/attacker", true},
		"images":                            {"ImagePolicyWebhook", "imagePolicy: {kubeConfigFile: /srv/attacker}", false},
		"images, with a Secret":             {"ImagePolicyWebhook", "imagePolicy: {kubeConfigFile: /srv/attacker}", true},
		"images, in another case":           {"ImagePolicyWebhook", "imagePolicy: {KubeConfigFile: /srv/attacker}", true},
		"images, all in another case":       {"ImagePolicyWebhook", "ImagePolicy: {kubeConfigFile: /srv/attacker}", true},
		"policies from a directory":         {"ValidatingAdmissionPolicy", "staticManifestsDir: /srv/attacker", false},
		"a plugin that takes no such thing": {"NodeRestriction", "kubeConfigFile: /srv/attacker", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := controlPlane(plugin(tc.plugin, tc.config))
			if tc.secret {
				v.Files.AdmissionKubeconfigs = map[string][]byte{tc.plugin: []byte(kubeconfig("", ""))}
			}
			if text, _ := files(t, v); strings.Contains(text, marker) {
				t.Errorf("it is in what the kube-apiserver reads:\n%s", text)
			}
		})
	}
}

// An authorizer of a tenant must not take the place of the one that says what nodes may do, nor read files of the seed.
func TestAuthorizerTakesAnothersPlace(t *testing.T) {
	good := []byte(kubeconfig("", ""))
	evil := []byte(strings.Replace(kubeconfig("", ""), "webhook.example", "attacker.example", 1))
	for name, f := range map[string]kubeapiserver.Files{
		"by its name": {
			Authorization:            strings.Replace(authorization, "name: theirs", "name: node-agent-authorizer", 1),
			AuthorizationKubeconfigs: map[string][]byte{"node-agent-authorizer": evil},
		},
		"by the name of its kubeconfig": {
			Authorization: authorization, AuthorizationKubeconfigs: map[string][]byte{"theirs": good, "node-agent-authorizer": evil},
		},
		"by a path": {
			Authorization:            strings.Replace(authorization, "webhook: {", "webhook: {connectionInfo: {type: KubeConfigFile, kubeConfigFile: /srv/attacker}, ", 1),
			AuthorizationKubeconfigs: map[string][]byte{"theirs": good},
		},
		"by a name that is a path": {
			Authorization:            strings.Replace(authorization, "name: theirs", "name: ../../srv/attacker", 1),
			AuthorizationKubeconfigs: map[string][]byte{"../../srv/attacker": good},
		},
		"by letting everybody in": {
			Authorization: authorization + "- {type: AlwaysAllow, name: attacker}\n", AuthorizationKubeconfigs: map[string][]byte{"theirs": good},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := controlPlane()
			v.Files = f
			if text, refused := files(t, v); strings.Contains(text, marker) {
				t.Errorf("it is in what the kube-apiserver reads:\n%s", text)
			} else if !refused && !strings.Contains(text, "of the resource manager") {
				t.Error("the kubeconfig of Gardener's own authorizer is gone")
			}
		})
	}
}

// What keeps a kube-apiserver from starting is an error of the Shoot before anything is rendered: what runs is not touched.
func TestConfigurationStopsTheAPIServer(t *testing.T) {
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
	const authentication = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	for name, change := range map[string]func(*kubeapiserver.Values){
		"audit policy of no kind":            func(v *kubeapiserver.Values) { v.Files.AuditPolicy = "rules: [{level: None}]" },
		"audit policy with an unknown level": func(v *kubeapiserver.Values) { v.Files.AuditPolicy = policy + "rules: [{level: All}]" },
		"audit policy without rules":         func(v *kubeapiserver.Values) { v.Files.AuditPolicy = policy },
		"audit policy that logs nothing":     func(v *kubeapiserver.Values) { v.Files.AuditPolicy = policy + "rules: [{level: None}]\nrulez: []" },
		"authentication with an unknown key": func(v *kubeapiserver.Values) { v.Files.Authentication = authentication + "jwts: []" },
		"authentication by HTTP": func(v *kubeapiserver.Values) {
			v.Files.Authentication = authentication + "jwt: [{issuer: {url: 'http://x'}}]"
		},
		"authentication by the cluster's own": func(v *kubeapiserver.Values) {
			v.Files.Authentication = authentication + "jwt: [{issuer: {url: 'https://api.example', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]"
		},
		"authentication through a tunnel that is none": func(v *kubeapiserver.Values) {
			v.Files.Authentication = strings.Replace(authentication, "/v1\n", "/v1beta1\n", 1) +
				"jwt: [{issuer: {url: 'https://issuer.example.com', egressSelectorType: cluster, audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]"
			v.Tunnel = nil // a cluster without nodes
		},
		"authorization without a time limit": func(v *kubeapiserver.Values) {
			v.Files.Authorization = strings.Replace(authorization, "timeout: 3s, ", "", 1)
			v.Files.AuthorizationKubeconfigs = map[string][]byte{"theirs": []byte(kubeconfig("", ""))}
		},
		"a kubeconfig without a context": func(v *kubeapiserver.Values) {
			*v = ofPlugin("ImagePolicyWebhook")([]byte(strings.Replace(kubeconfig("", ""), "current-context: a", "", 1)))
		},
		"a kubeconfig whose CA is none": func(v *kubeapiserver.Values) {
			*v = ofPlugin("ImagePolicyWebhook")([]byte(kubeconfig(", certificate-authority-data: eA==", "")))
		},
		"images without a kubeconfig": func(v *kubeapiserver.Values) { *v = controlPlane(plugin("ImagePolicyWebhook", "")) },
		"events without a limit":      func(v *kubeapiserver.Values) { *v = controlPlane(plugin("EventRateLimit", "")) },
		"a selector that is read over and over": func(v *kubeapiserver.Values) {
			*v = controlPlane(plugin("PodNodeSelector", "podNodeSelectorPluginConfig: [a]"))
		},
		"tolerations that are not valid": func(v *kubeapiserver.Values) {
			*v = controlPlane(plugin("PodTolerationRestriction", "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\ndefault: [{operator: Some}]"))
		},
		"a level of security that is none": func(v *kubeapiserver.Values) {
			*v = controlPlane(plugin("PodSecurity", "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults: {enforce-version: new}"))
		},
		"a quota of nothing": func(v *kubeapiserver.Values) {
			*v = controlPlane(plugin("ResourceQuota", "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResource: []"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := controlPlane()
			change(&v)
			if _, refused := files(t, v); !refused {
				t.Error("it is handed on")
			}
		})
	}
}
