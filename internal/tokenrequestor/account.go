package tokenrequestor

import (
	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apimachinery/pkg/types"
)

// claims are those of a token of a ServiceAccount that say whose it is.
type claims struct {
	jwt.RegisteredClaims

	Kubernetes struct {
		ServiceAccount struct {
			UID types.UID `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// AccountIn returns the UID of the ServiceAccount that a token says it is of. It is empty if the token does not say. A token of a ServiceAccount
// that was deleted and created again is not accepted any more: so it is when etcd is restored from a backup that is older than the account.
func AccountIn(token string) types.UID {
	found := &claims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, found); err != nil {
		return ""
	}
	return found.Kubernetes.ServiceAccount.UID
}
