package configurationfile

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
	"gardener.cloud/gardener/internal/shoot/apiserverfiles"
)

const invalid, failed = http.StatusUnprocessableEntity, http.StatusInternalServerError

type change = func(*corev1beta1.Shoot)

// newShoot is a Shoot that refers to the ConfigMap "config" with all of its files.
func newShoot(changes ...change) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "s", UID: "uid"}}
	s.Spec.Kubernetes.Version = "1.35.1"
	s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AuditConfig:              &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "config"}}},
		StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "config"},
		StructuredAuthorization: &corev1beta1.StructuredAuthorization{
			ConfigMapName: "config", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: "a"}},
		},
	}
	for _, c := range changes {
		c(s)
	}
	return s
}

func kubeAPIServer(set func(*corev1beta1.KubeAPIServerConfig)) change {
	return func(s *corev1beta1.Shoot) { set(s.Spec.Kubernetes.KubeAPIServer) }
}

func named(name string) change { return func(s *corev1beta1.Shoot) { s.Name = name } }

func version(version string) change {
	return func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = version }
}

func configMap(key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "config"}, Data: map[string]string{key: text}}
}

// file is a kind of file with contents to try.
type file struct {
	apiserverfiles.File
	key, valid, invalid string
	// none removes the reference from a Shoot, and other refers to another ConfigMap.
	none, other change
}

var files = map[string]file{
	"audit": {
		File: apiserverfiles.AuditPolicy, key: "policy", valid: policy + "rules: [{level: Metadata}]", invalid: policy + "rules: [{level: All}]",
		none: kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) { c.AuditConfig = nil }),
		other: kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) {
			c.AuditConfig = &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "other"}}}
		}),
	},
	"authentication": {
		File: apiserverfiles.Authentication, key: "config.yaml", valid: authentication("v1", "https://a.example"), invalid: authentication("v1", "http://a.example"),
		none: kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) { c.StructuredAuthentication = nil }),
		other: kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthentication = &corev1beta1.StructuredAuthentication{ConfigMapName: "other"}
		}),
	},
	"authorization": {
		File: apiserverfiles.Authorization, key: "config.yaml", valid: authorization("v1", webhook("a", "")), invalid: authorization("v1", "- {type: RBAC, name: a}\n"),
		none: kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) { c.StructuredAuthorization = nil }),
		other: kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthorization = &corev1beta1.StructuredAuthorization{
				ConfigMapName: "other", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: "a"}},
			}
		}),
	},
}

const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

func authentication(version string, issuers ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\njwt:\n"
	for _, issuer := range issuers {
		text += "- {issuer: {url: '" + issuer + "', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}\n"
	}
	return text
}

func authorization(version string, authorizers ...string) string {
	return "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthorizationConfiguration\nauthorizers:\n" + strings.Join(authorizers, "")
}

func webhook(name, more string) string {
	return "- type: Webhook\n  name: " + name + "\n  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny" + more + "}\n"
}

// What is alike for all kinds of files.
func TestFiles(t *testing.T) {
	deleted := func(s *corev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	noConfig := func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.KubeAPIServer = nil }
	for name, f := range files {
		for rule, tc := range map[string]struct {
			shoot, old *corev1beta1.Shoot
			text       string // in the ConfigMap of the Shoot
			code       int
			message    string
		}{
			"create: valid":                      {newShoot(), nil, f.valid, webhooktest.Allowed, ""},
			"create: invalid":                    {newShoot(), nil, f.invalid, invalid, "data[" + f.key + "]."},
			"create: no YAML":                    {newShoot(), nil, "a: [", invalid, "config"},
			"create: another kind":               {newShoot(), nil, "apiVersion: v1\nkind: Secret\n", invalid, "kind"},
			"create: empty":                      {newShoot(), nil, "", invalid, "data[" + f.key + "]"},
			"create: ConfigMap missing":          {newShoot(f.other), nil, f.valid, invalid, `"other": ConfigMap not found`},
			"create: without the file":           {newShoot(f.none), nil, f.invalid, webhooktest.Allowed, ""},
			"create: without any configuration":  {newShoot(noConfig), nil, f.invalid, webhooktest.Allowed, ""},
			"create: deleted":                    {newShoot(deleted), nil, f.invalid, webhooktest.Allowed, ""},
			"update: nothing":                    {newShoot(), newShoot(), f.invalid, webhooktest.Allowed, ""},
			"update: something else":             {newShoot(func(s *corev1beta1.Shoot) { s.Spec.Region = "b" }), newShoot(), f.invalid, webhooktest.Allowed, ""},
			"update: added":                      {newShoot(), newShoot(f.none), f.invalid, invalid, ""},
			"update: added, valid":               {newShoot(), newShoot(noConfig), f.valid, webhooktest.Allowed, ""},
			"update: another ConfigMap":          {newShoot(), newShoot(f.other), f.invalid, invalid, ""},
			"update: another ConfigMap, valid":   {newShoot(), newShoot(f.other), f.valid, webhooktest.Allowed, ""},
			"update: another ConfigMap, missing": {newShoot(f.other), newShoot(), f.valid, invalid, "not found"},
			"update: Kubernetes":                 {newShoot(), newShoot(version("1.34.1")), f.invalid, invalid, ""},
			"update: Kubernetes, valid":          {newShoot(), newShoot(version("1.34.1")), f.valid, webhooktest.Allowed, ""},
			"update: removed":                    {newShoot(f.none), newShoot(), f.invalid, webhooktest.Allowed, ""},
			"update: deleted":                    {newShoot(deleted), newShoot(f.other), f.invalid, webhooktest.Allowed, ""},
		} {
			t.Run(name+": "+rule, func(t *testing.T) {
				h := &Handler{File: f.File, Reader: webhooktest.Garden(t, configMap(f.key, tc.text)).Build(), Decoder: webhooktest.Decoder(t)}
				request := webhooktest.Create(t, "shoots", tc.shoot)
				if tc.old != nil {
					request = webhooktest.Update(t, "shoots", tc.shoot, tc.old)
				}
				webhooktest.Expect(t, h.Handle(t.Context(), request), tc.code, tc.message)
			})
		}
		elsewhere := newShoot()
		elsewhere.Namespace = "garden-b"
		for rule, tc := range map[string]struct {
			text, old string
			shoots    []client.Object
			code      int
			message   string
		}{
			"valid":               {f.valid, f.invalid, []client.Object{newShoot()}, webhooktest.Allowed, ""},
			"invalid":             {f.invalid, f.valid, []client.Object{newShoot()}, invalid, "data[" + f.key + "]."},
			"no YAML":             {"a: [", f.valid, []client.Object{newShoot()}, invalid, ""},
			"another kind":        {"apiVersion: v1\nkind: Secret\n", f.valid, []client.Object{newShoot()}, invalid, "kind"},
			"emptied":             {"", f.valid, []client.Object{newShoot()}, invalid, "data[" + f.key + "]"},
			"empty as before":     {"", "", []client.Object{newShoot()}, invalid, "data[" + f.key + "]"},
			"invalid as before":   {f.invalid, f.invalid, []client.Object{newShoot()}, webhooktest.Allowed, ""},
			"without Shoots":      {"", f.valid, nil, webhooktest.Allowed, ""},
			"without references":  {f.invalid, f.valid, []client.Object{newShoot(f.none), newShoot(f.other, named("b"))}, webhooktest.Allowed, ""},
			"reference elsewhere": {f.invalid, f.valid, []client.Object{elsewhere}, webhooktest.Allowed, ""},
		} {
			t.Run(name+": ConfigMap: "+rule, func(t *testing.T) {
				h := &Handler{File: f.File, Cache: webhooktest.Garden(t, tc.shoots...).Build(), Decoder: webhooktest.Decoder(t)}
				request := webhooktest.Update(t, "configmaps", configMap(f.key, tc.text), configMap(f.key, tc.old))
				webhooktest.Expect(t, h.Handle(t.Context(), request), tc.code, tc.message)
			})
		}
		t.Run(name+": others", func(t *testing.T) {
			h := &Handler{File: f.File, Cache: webhooktest.Unreachable(t), Reader: webhooktest.Unreachable(t), Decoder: webhooktest.Decoder(t)}
			webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Create(t, "shoots", newShoot())), failed, "unreachable")
			undecodable := webhooktest.Create(t, "shoots", newShoot())
			undecodable.Object.Raw = []byte("{")
			webhooktest.Expect(t, h.Handle(t.Context(), undecodable), failed, "decode")
			undecodable = webhooktest.Update(t, "configmaps", configMap(f.key, f.valid), configMap(f.key, f.valid))
			undecodable.OldObject.Raw = []byte("{")
			webhooktest.Expect(t, h.Handle(t.Context(), undecodable), failed, "decode")
			webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Update(t, "configmaps", configMap(f.key, f.valid), configMap(f.key, ""))), failed, "list Shoots")
			webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Create(t, "configmaps", configMap(f.key, f.invalid))), webhooktest.Allowed)
			webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Create(t, "secrets", &corev1.Secret{})), webhooktest.Allowed)
		})
	}
}

func anonymous(s *corev1beta1.Shoot) {
	s.Spec.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication = new(true)
}

func managed(s *corev1beta1.Shoot) {
	s.Annotations = map[string]string{"authentication.gardener.cloud/issuer": "managed"}
}

func serviceAccounts(issuer string, accepted ...string) change {
	return kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) {
		c.ServiceAccountConfig = &corev1beta1.ServiceAccountConfig{Issuer: &issuer, AcceptedIssuers: accepted}
	})
}

func advertised(name, url string) change {
	return func(s *corev1beta1.Shoot) {
		s.Status.AdvertisedAddresses = append(s.Status.AdvertisedAddresses, corev1beta1.ShootAdvertisedAddress{Name: name, URL: url})
	}
}

func TestAuthentication(t *testing.T) {
	const a, issuer = "https://a.example", "https://issuers.example/projects/a/shoots/uid/issuer"
	const noIssuer = "jwt[0].issuer.url"
	withUID := func(uid types.UID) change { return func(s *corev1beta1.Shoot) { s.UID = uid } }
	host := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "issuer", Labels: map[string]string{"gardener.cloud/role": "shoot-service-account-issuer"}},
		Data:       map[string][]byte{"hostname": []byte("issuers.example")},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-a", Labels: map[string]string{"project.gardener.cloud/name": "a"}}}
	garden := []client.Object{host, namespace}
	withAnonymous := authentication("v1beta1", a) + "anonymous: {enabled: false}\n"
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		text       string
		garden     []client.Object
		code       int
		message    []string
	}{
		"alpha":                             {newShoot(), nil, authentication("v1alpha1", a), nil, webhooktest.Allowed, nil},
		"beta":                              {newShoot(), nil, authentication("v1beta1", a), nil, webhooktest.Allowed, nil},
		"final":                             {newShoot(), nil, authentication("v1", a), nil, webhooktest.Allowed, nil},
		"final, too early":                  {newShoot(version("1.33.1")), nil, authentication("v1", a), nil, invalid, []string{"kind"}},
		"unknown field":                     {newShoot(), nil, authentication("v1", a) + "jwts: []\n", nil, invalid, []string{"jwts"}},
		"two errors":                        {newShoot(), nil, authentication("v1", "http://a.example", "http://b.example"), nil, invalid, []string{"jwt[0]", "jwt[1]"}},
		"issuer of the Shoot":               {newShoot(serviceAccounts(a)), nil, authentication("v1", a), nil, invalid, []string{noIssuer}},
		"accepted issuer":                   {newShoot(serviceAccounts("https://b.example", a)), nil, authentication("v1", a), nil, invalid, []string{noIssuer}},
		"advertised issuer":                 {newShoot(advertised("service-account-issuer", a)), nil, authentication("v1", a), nil, invalid, []string{noIssuer}},
		"internal address":                  {newShoot(advertised("internal", a)), nil, authentication("v1", a), nil, invalid, []string{noIssuer}},
		"external address":                  {newShoot(advertised("external", a)), nil, authentication("v1", a), nil, invalid, []string{noIssuer}},
		"another address":                   {newShoot(advertised("dashboard", a)), nil, authentication("v1", a), nil, webhooktest.Allowed, nil},
		"another issuer":                    {newShoot(serviceAccounts("https://b.example")), nil, authentication("v1", a), nil, webhooktest.Allowed, nil},
		"managed issuer":                    {newShoot(managed), nil, authentication("v1", a, issuer), garden, invalid, []string{"jwt[1].issuer.url"}},
		"managed issuer of another":         {newShoot(managed, withUID("b")), nil, authentication("v1", issuer), garden, webhooktest.Allowed, nil},
		"managed issuer, no UID":            {newShoot(managed, withUID("")), nil, authentication("v1", strings.Replace(issuer, "uid", "", 1)), garden, webhooktest.Allowed, nil},
		"not managed":                       {newShoot(), nil, authentication("v1", issuer), garden, webhooktest.Allowed, nil},
		"managed issuer, no host":           {newShoot(managed), nil, authentication("v1", issuer), []client.Object{namespace}, webhooktest.Allowed, nil},
		"managed issuer, no project":        {newShoot(managed), nil, authentication("v1", issuer), []client.Object{host, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-a"}}}, webhooktest.Allowed, nil},
		"managed issuer, no namespace":      {newShoot(managed), nil, authentication("v1", issuer), []client.Object{host}, failed, []string{`Namespace "garden-a"`}},
		"anonymous in both":                 {newShoot(anonymous), nil, withAnonymous, nil, invalid, []string{"anonymous", "Shoots: s"}},
		"anonymous in the file":             {newShoot(), nil, withAnonymous, nil, webhooktest.Allowed, nil},
		"anonymous in the Shoot":            {newShoot(anonymous), nil, authentication("v1beta1", a), nil, webhooktest.Allowed, nil},
		"update: anonymous, new":            {newShoot(anonymous), newShoot(), withAnonymous, nil, invalid, []string{"anonymous"}},
		"update: anonymous, as before":      {newShoot(anonymous), newShoot(anonymous), withAnonymous, nil, webhooktest.Allowed, nil},
		"update: anonymous, not any more":   {newShoot(), newShoot(anonymous), "a: [", nil, webhooktest.Allowed, nil},
		"update: managed, new":              {newShoot(managed), newShoot(), authentication("v1", issuer), garden, invalid, []string{noIssuer}},
		"update: managed, as before":        {newShoot(managed), newShoot(managed), authentication("v1", issuer), garden, webhooktest.Allowed, nil},
		"update: managed, not any more":     {newShoot(), newShoot(managed), "a: [", garden, invalid, nil},
		"update: issuer, new":               {newShoot(serviceAccounts(a)), newShoot(), authentication("v1", a), nil, invalid, []string{noIssuer}},
		"update: issuers in another order":  {newShoot(serviceAccounts(a, "https://b.example")), newShoot(serviceAccounts("https://b.example", a)), authentication("v1", a), nil, webhooktest.Allowed, nil},
		"update: advertised address, new":   {newShoot(advertised("external", a)), newShoot(), authentication("v1", a), nil, invalid, []string{noIssuer}},
		"update: other address advertised":  {newShoot(advertised("dashboard", a)), newShoot(), "a: [", nil, webhooktest.Allowed, nil},
		"update: too early for the version": {newShoot(version("1.33.2")), newShoot(version("1.33.1")), authentication("v1", a), nil, invalid, []string{"kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{configMap("config.yaml", tc.text)}, tc.garden...)
			h := &Handler{File: apiserverfiles.Authentication, Reader: webhooktest.Garden(t, objects...).Build(), Decoder: webhooktest.Decoder(t)}
			request := webhooktest.Create(t, "shoots", tc.shoot)
			if tc.old != nil {
				request = webhooktest.Update(t, "shoots", tc.shoot, tc.old)
			}
			webhooktest.Expect(t, h.Handle(t.Context(), request), tc.code, tc.message...)
		})
	}
	for name, tc := range map[string]struct {
		shoots  []client.Object
		text    string
		code    int
		message []string
	}{
		"issuer of one of two":      {[]client.Object{newShoot(), newShoot(named("t"), serviceAccounts("https://b.example"))}, authentication("v1", "https://b.example"), invalid, []string{noIssuer}},
		"managed issuer":            {[]client.Object{newShoot(named("r")), newShoot(managed)}, authentication("v1", issuer), invalid, []string{noIssuer}},
		"too early for one of two":  {[]client.Object{newShoot(), newShoot(named("t"), version("1.33.1"))}, authentication("v1", a), invalid, []string{"kind"}},
		"anonymous in two of three": {[]client.Object{newShoot(anonymous), newShoot(named("t")), newShoot(named("r"), anonymous)}, withAnonymous, invalid, []string{"Shoots: r, s"}},
		"for all":                   {[]client.Object{newShoot(), newShoot(named("t"), managed)}, authentication("v1", a), webhooktest.Allowed, nil},
	} {
		t.Run("ConfigMap: "+name, func(t *testing.T) {
			h := &Handler{
				File: apiserverfiles.Authentication, Cache: webhooktest.Garden(t, tc.shoots...).Build(), Reader: webhooktest.Garden(t, garden...).Build(), Decoder: webhooktest.Decoder(t),
			}
			request := webhooktest.Update(t, "configmaps", configMap("config.yaml", tc.text), configMap("config.yaml", "old"))
			webhooktest.Expect(t, h.Handle(t.Context(), request), tc.code, tc.message...)
		})
	}
	t.Run("host cannot be read", func(t *testing.T) {
		reader := webhooktest.Garden(t, configMap("config.yaml", authentication("v1", a))).WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New("unreachable")
			},
		}).Build()
		h := &Handler{File: apiserverfiles.Authentication, Reader: reader, Decoder: webhooktest.Decoder(t)}
		webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Create(t, "shoots", newShoot(managed))), failed, "host of managed issuers")
	})
}

func TestAuthorization(t *testing.T) {
	kubeconfigs := func(names ...string) change {
		return kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthorization.Kubeconfigs = nil
			for _, name := range names {
				c.StructuredAuthorization.Kubeconfigs = append(c.StructuredAuthorization.Kubeconfigs, corev1beta1.AuthorizerKubeconfigReference{AuthorizerName: name, SecretName: name})
			}
		})
	}
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		text       string
		code       int
		message    []string
	}{
		"alpha":                          {newShoot(), nil, authorization("v1alpha1", webhook("a", "")), webhooktest.Allowed, nil},
		"beta":                           {newShoot(), nil, authorization("v1beta1", webhook("a", "")), webhooktest.Allowed, nil},
		"final":                          {newShoot(), nil, authorization("v1", webhook("a", "")), webhooktest.Allowed, nil},
		"two webhooks":                   {newShoot(kubeconfigs("a", "b")), nil, authorization("v1", webhook("b", ""), webhook("a", "")), webhooktest.Allowed, nil},
		"more kubeconfigs":               {newShoot(kubeconfigs("a", "b")), nil, authorization("v1", webhook("a", "")), webhooktest.Allowed, nil},
		"name twice":                     {newShoot(), nil, authorization("v1", webhook("a", ""), webhook("a", "")), invalid, []string{"authorizers[1].name"}},
		"Node":                           {newShoot(), nil, authorization("v1", "- {type: Node, name: a}\n"), invalid, []string{"authorizers[0].type"}},
		"connection":                     {newShoot(), nil, authorization("v1", webhook("a", ", connectionInfo: {type: InClusterConfig}")), invalid, []string{"data[config.yaml].authorizers[0].webhook.connectionInfo"}},
		"without a kubeconfig":           {newShoot(), nil, authorization("v1", webhook("b", "")), invalid, []string{"authorizers[0].name", `"b"`, "Shoots: s"}},
		"without any kubeconfig":         {newShoot(kubeconfigs()), nil, authorization("v1", webhook("a", "")), invalid, []string{"authorizers[0].name"}},
		"unknown field":                  {newShoot(), nil, authorization("v1", webhook("a", ", kubeConfigFile: x")), invalid, []string{"kubeConfigFile"}},
		"update: kubeconfig removed":     {newShoot(kubeconfigs("b")), newShoot(kubeconfigs("a", "b")), authorization("v1", webhook("a", "")), invalid, []string{"authorizers[0].name"}},
		"update: kubeconfig added":       {newShoot(kubeconfigs("a", "b")), newShoot(kubeconfigs("b")), authorization("v1", webhook("a", "")), webhooktest.Allowed, nil},
		"update: kubeconfigs reordered":  {newShoot(kubeconfigs("a", "b")), newShoot(kubeconfigs("b", "a")), "a: [", webhooktest.Allowed, nil},
		"update: another Secret":         {newShoot(kubeAPIServer(func(c *corev1beta1.KubeAPIServerConfig) { c.StructuredAuthorization.Kubeconfigs[0].SecretName = "z" })), newShoot(), "a: [", webhooktest.Allowed, nil},
		"update: kubeconfig, other file": {newShoot(kubeconfigs("a", "b")), newShoot(kubeconfigs("a")), "a: [", invalid, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Handler{File: apiserverfiles.Authorization, Reader: webhooktest.Garden(t, configMap("config.yaml", tc.text)).Build(), Decoder: webhooktest.Decoder(t)}
			request := webhooktest.Create(t, "shoots", tc.shoot)
			if tc.old != nil {
				request = webhooktest.Update(t, "shoots", tc.shoot, tc.old)
			}
			webhooktest.Expect(t, h.Handle(t.Context(), request), tc.code, tc.message...)
		})
	}
	t.Run("ConfigMap: without a kubeconfig in one of three", func(t *testing.T) {
		shoots := webhooktest.Garden(t, newShoot(), newShoot(named("t"), kubeconfigs("b")), newShoot(named("r"), kubeconfigs("a", "b"))).Build()
		h := &Handler{File: apiserverfiles.Authorization, Cache: shoots, Decoder: webhooktest.Decoder(t)}
		request := webhooktest.Update(t, "configmaps", configMap("config.yaml", authorization("v1", webhook("a", ""))), configMap("config.yaml", "old"))
		webhooktest.Expect(t, h.Handle(t.Context(), request), invalid, `"a"`, "(Shoots: t)")
	})
}
