/**
 * The process of an upstream whose replies are costly: `node reply-upstream.js PORT`. The last digits of the
 * model name the reply.
 */
import { createServer } from 'node:http'
import { COSTLY_REPLIES } from './costly-replies.js'

const server = createServer((req, res) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.once('end', () => {
    const index = /"model":"costly-(\d+)"/.exec(Buffer.concat(chunks).toString())?.[1]
    const reply = COSTLY_REPLIES[Number(index)]
    if (reply === undefined) res.writeHead(404).end()
    else res.writeHead(200, reply.headers).end(reply.body())
  })
})
server.listen(Number(process.argv[2]), '127.0.0.1')
process.once('disconnect', () => process.exit(0))
