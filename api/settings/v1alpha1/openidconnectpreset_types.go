package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OpenIDConnectPreset gives new shoots of its namespace an OpenID Connect configuration. Among several that fit,
// the one with the highest weight wins, and then the one that is last in the alphabet. Only shoots without
// oidcConfig are concerned.
type OpenIDConnectPreset struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the configuration and for whom it is.
	Spec OpenIDConnectPresetSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OpenIDConnectPresetList is a list of OpenIDConnectPreset objects.
type OpenIDConnectPresetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []OpenIDConnectPreset `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// OpenIDConnectPresetSpec is an OpenID Connect configuration and for whom it is.
type OpenIDConnectPresetSpec struct {
	// Server is what the kube-apiserver gets.
	Server KubeAPIServerOpenIDConnect `json:"server" protobuf:"bytes,1,opt,name=server"`
	// Client is what clients get.
	// +optional
	Client *OpenIDConnectClientAuthentication `json:"client,omitempty" protobuf:"bytes,2,opt,name=client"`
	// ShootSelector selects the shoots by their labels. Without it none is selected; an empty one selects all.
	// +optional
	ShootSelector *metav1.LabelSelector `json:"shootSelector,omitempty" protobuf:"bytes,3,opt,name=shootSelector"`
	// Weight decides between presets that fit: 1 to 100.
	Weight int32 `json:"weight" protobuf:"varint,4,opt,name=weight"`
}

// KubeAPIServerOpenIDConnect is the OpenID Connect configuration of a kube-apiserver.
type KubeAPIServerOpenIDConnect struct {
	// CABundle is the CA bundle of the provider in PEM form. That of the system if unset.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,1,opt,name=caBundle"`
	// ClientID is the client that tokens must be issued for.
	ClientID string `json:"clientID" protobuf:"bytes,2,opt,name=clientID"`
	// GroupsClaim is the claim with the groups of the user.
	// +optional
	GroupsClaim *string `json:"groupsClaim,omitempty" protobuf:"bytes,3,opt,name=groupsClaim"`
	// GroupsPrefix is put before each group.
	// +optional
	GroupsPrefix *string `json:"groupsPrefix,omitempty" protobuf:"bytes,4,opt,name=groupsPrefix"`
	// IssuerURL is the URL of the provider, with the scheme https.
	IssuerURL string `json:"issuerURL" protobuf:"bytes,5,opt,name=issuerURL"`
	// RequiredClaims are claims that a token must have with these values.
	// +optional
	RequiredClaims map[string]string `json:"requiredClaims,omitempty" protobuf:"bytes,6,rep,name=requiredClaims"`
	// SigningAlgs are the accepted algorithms of signatures. [RS256] is the default.
	// +optional
	SigningAlgs []string `json:"signingAlgs,omitempty" protobuf:"bytes,7,rep,name=signingAlgs"`
	// UsernameClaim is the claim with the name of the user. "sub" is the default.
	// +optional
	UsernameClaim *string `json:"usernameClaim,omitempty" protobuf:"bytes,8,opt,name=usernameClaim"`
	// UsernamePrefix is put before the name.
	// +optional
	UsernamePrefix *string `json:"usernamePrefix,omitempty" protobuf:"bytes,9,opt,name=usernamePrefix"`
}

// OpenIDConnectClientAuthentication is what clients need to get tokens.
type OpenIDConnectClientAuthentication struct {
	// Secret is the client secret.
	// +optional
	Secret *string `json:"secret,omitempty" protobuf:"bytes,1,opt,name=secret"`
	// ExtraConfig is further configuration for the client plugin. Keys that a field exists for are refused.
	// +optional
	ExtraConfig map[string]string `json:"extraConfig,omitempty" protobuf:"bytes,2,rep,name=extraConfig"`
}
