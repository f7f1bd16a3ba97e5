// Package extensions validates the objects of extensions.gardener.cloud.
//
// All functions are pure: they look at one object, or at an object and its predecessor, and return every error at once, each with the
// path that the user typed. They are what the webhook of the gardener-resource-manager answers with.
package extensions
