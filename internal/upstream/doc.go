// Package upstream joins the servers of one model behind one
// [http.RoundTripper].
//
//   - A request and its response pass unchanged. Only scheme, host and the
//     endpoint's base path are filled in. No header is added, no redirect is
//     followed, nothing is decompressed, no proxy is taken from the
//     environment.
//   - A request goes to the endpoint that served the longest prefix of its key
//     (see [WithKey]), so that the server's prefix cache hits, unless that
//     endpoint is unhealthy or carries much more than the others; else to the
//     endpoint with the fewest running requests.
//   - A request is sent again only where no byte of a response was seen, the
//     body can be replayed, and the endpoint provably did not handle it: no
//     connection came about, or it answered 503. (On a kept connection that
//     turns out closed, net/http sends it again by the same rule; a request
//     with an idempotent method, or an Idempotency-Key, also where it may have
//     arrived.) A request that makes a server crash so meets one server only.
//   - Endpoints are checked in the background, and left out for a growing time
//     after repeated failures. Bad health alone never refuses a request: where
//     no endpoint is usable they are tried all the same, so that errors are
//     the real ones.
//   - Every wait has a limit of its own: for a connection, for the response's
//     headers, for the next bytes of its body. None is taken for the end of
//     the caller's context, nor the other way round.
//
// A request lives in a try, from the choice of its endpoint to the end of the
// response's body; the endpoint's load counts the tries that live.
package upstream
