// Package constants has the well-known names and values of the garden: keys and values of labels and annotations,
// finalizers, operations, names of namespaces, secrets, users and groups.
//
// Conditions, enumerations and error codes are typed and stand beside the kinds that have them.
package constants
