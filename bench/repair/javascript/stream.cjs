// Runs @streamparser/json, which repairs nothing, for the benchmark of streams: see ../stream.go.

const readline = require('node:readline')
const { JSONParser } = require('@streamparser/json')

const chunk = 8 // bytes; as in ../stream.go

function answer({ input }) {
  const bytes = Buffer.from(input, 'base64')
  const pieces = []
  for (let i = 0; i < bytes.length; i += chunk) pieces.push(bytes.subarray(i, i + chunk))
  let values = 0
  const start = performance.now()
  try {
    const parser = new JSONParser()
    parser.onValue = () => { values++ }
    for (const piece of pieces) parser.write(piece)
    return { seconds: (performance.now() - start) / 1000, values }
  } catch (error) {
    return { seconds: (performance.now() - start) / 1000, error: String(error).slice(0, 200) }
  }
}

readline.createInterface({ input: process.stdin, crlfDelay: Infinity }).on('line', (line) => {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + '\n')
})
