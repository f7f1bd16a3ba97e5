// Package operator validates the objects of operator.gardener.cloud.
//
// All functions are pure: they check one object, or an object and its old version, and return every error at once, each with the
// path that the user typed. The CustomResourceDefinitions refuse simple mistakes already; here are the checks that they cannot express.
package operator
