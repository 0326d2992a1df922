// Package wiretest records what a client and a server say to each other, and
// plays the server's part again, for tests without the server.
//
//   - A recording is a file of JSON lines, an [Exchange] each. An answer that
//     came as a stream of events is kept event by event, as it was on the wire.
//   - A [Replayer] answers what was recorded and nothing else: the test fails
//     where a request differs from the recorded ones in any field, where one is
//     made once too often, and where one is left over at the end.
//   - Which of several requests at once comes first does not matter; of equal
//     ones each gets the next answer.
package wiretest
