// Runs jsonrepair for the benchmark: see ../contestants.go for the lines that are read and written.

const readline = require('node:readline')
const { jsonrepair } = require('jsonrepair')

function answer(request) {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(request.input, 'base64'))
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  try {
    const output = jsonrepair(text)
    const took = seconds()
    return { seconds: took, output: Buffer.from(output, 'utf8').toString('base64') }
  } catch (error) {
    return { seconds: seconds(), error: String(error).slice(0, 200) }
  }
}

readline.createInterface({ input: process.stdin, crlfDelay: Infinity }).on('line', (line) => {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + '\n')
})
