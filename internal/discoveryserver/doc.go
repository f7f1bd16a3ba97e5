// Package discoveryserver is gardener-discovery-server: the public server of what third parties need to trust shoots and WorkloadIdentities. It serves
// OpenID configurations and public keys of the managed issuers of shoots, the CAs of their kube-apiservers, and the same documents for the issuer of
// WorkloadIdentity tokens.
//
// It needs no credentials from its clients. Documents of shoots are Secrets and ConfigMaps in the garden that gardenlets write. It does not trust them:
// what is served is checked against the Project and the Shoot for each request, and encoded again. Documents of the issuer of WorkloadIdentity tokens are
// files. Source: concepts.txt, "Gardener Discovery Server".
package discoveryserver
