package kind

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Requester returns the namespace of a request for a subresource, and its user.
func Requester(ctx context.Context) (namespace string, requester user.Info, err error) {
	namespace, inNamespace := request.NamespaceFrom(ctx)
	requester, known := request.UserFrom(ctx)
	if !inNamespace || !known {
		return "", nil, apierrors.NewInternalError(errors.New("a request without a namespace or a user"))
	}
	return namespace, requester, nil
}

// SetResponseMeta gives the response to a request for a subresource the name of the main object. It has no field managers.
func SetResponseMeta(meta *metav1.ObjectMeta, name string) {
	meta.Name, meta.ManagedFields = name, nil
}
