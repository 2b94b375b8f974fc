/**
 * Goal: a client's URL returns an image or a document, and never data of the network behind the gateway, for
 * any address and redirect.
 * Method: servers on loopback addresses, of which one counts as public.
 */
import { createServer, type RequestListener } from 'node:http'
import type { LookupFunction } from 'node:net'
import t, { type Test } from 'tap'
import type { FetchMediaConfig } from '../../../src/config/config.js'
import type { Network } from '../../../src/gateway/upstreams/connection-pool.js'
import { MediaError, MediaFetcher } from '../../../src/gateway/upstreams/media-fetcher.js'

const PNG = Buffer.from('\x89PNG\r\n\x1a\n and so on', 'latin1')
const LIMITS: FetchMediaConfig = {
  enabled: true,
  maxBytes: 1000,
  maxPerRequest: 16,
  timeoutMs: 5000,
  concurrency: 2,
  allowPrivateAddress: false,
}
const NEVER = new AbortController().signal

/** 127.0.0.1 is the public internet of these tests; every other address is private. */
const OUTSIDE: Network = { permits: (address) => address === '127.0.0.1' }

/** A server on an address; the requests that reached it. */
async function serve(
  t: Test,
  listener: RequestListener,
  host = '127.0.0.1',
): Promise<{ url: string; port: number; seen: string[] }> {
  const seen: string[] = []
  const server = createServer((req, res) => {
    seen.push(req.url ?? '')
    listener(req, res)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { url: `http://${host}:${port}`, port, seen }
}

function fetcher(t: Test, limits: Partial<FetchMediaConfig> = {}, network = OUTSIDE): MediaFetcher {
  const mediaFetcher = new MediaFetcher({ ...LIMITS, ...limits }, network)
  t.teardown(() => mediaFetcher.destroy())
  return mediaFetcher
}

async function failure(fetched: Promise<unknown>): Promise<string> {
  try {
    await fetched
  } catch (error) {
    if (error instanceof MediaError) return error.message
    throw error
  }
  return 'no failure'
}

const picture: RequestListener = (_req, res) => {
  res.writeHead(200, { 'content-type': 'image/jpeg' })
  res.end(PNG)
}

void t.test('the bytes determine the media type of an image, not the server', async (t) => {
  const { url, seen } = await serve(t, picture)
  const { mediaType, bytes } = await fetcher(t).fetch(`${url}/a.jpg?x=1#top`, NEVER)
  t.equal(mediaType, 'image/png')
  t.same(bytes, PNG)
  t.same(seen, ['/a.jpg?x=1'])
})

void t.test(
  'the declared type is used for plain text, sound and video; other types are refused',
  async (t) => {
    let type: string | undefined = 'text/plain; charset=utf-8'
    const { url } = await serve(t, (_req, res) => {
      res.writeHead(200, type === undefined ? {} : { 'content-type': type })
      res.end('words')
    })
    t.equal((await fetcher(t).fetch(url, NEVER)).mediaType, 'text/plain')
    for (type of ['audio/mpeg', 'video/mp4']) {
      t.equal((await fetcher(t).fetch(url, NEVER)).mediaType, type)
    }
    for (type of ['image/png', 'text/html', 'application/json', 'image/svg+xml', undefined]) {
      t.equal(
        await failure(fetcher(t).fetch(url, NEVER)),
        'the URL leads to no image, PDF, plain text, sound or video',
      )
    }
  },
)

void t.test('private addresses get no request', async (t) => {
  const inside = await serve(t, picture, '127.0.0.2')
  const real = new MediaFetcher(LIMITS)
  t.teardown(() => real.destroy())
  const refusal = 'the URL could not be fetched'
  for (const host of [
    '127.0.0.2',
    'localhost',
    '127.2',
    '0x7f000002',
    '2130706434',
    '0177.0.0.2',
    '[::ffff:127.0.0.2]',
    '[::ffff:7f00:2]',
    '[::1]',
    '[::]',
    '0.0.0.0',
    '169.254.169.254',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '10.0.0.1',
    '[64:ff9b::7f00:2]',
    '[2002:7f00:2::]',
  ]) {
    const found = await failure(real.fetch(`http://${host}:${inside.port}/`, NEVER))
    t.equal(found, refusal, host)
  }
  t.same(inside.seen, [])
  const missing = await failure(real.fetch('http://no-such-name.invalid/', NEVER))
  t.equal(missing, refusal, 'the same of a name that does not exist')
})

void t.test('a redirect to a private address is refused like a first address', async (t) => {
  const inside = await serve(t, picture, '127.0.0.2')
  const { url } = await serve(t, (_req, res) => {
    res.writeHead(302, { location: `${inside.url}/secret` })
    res.end()
  })
  t.equal(await failure(fetcher(t).fetch(url, NEVER)), 'the URL could not be fetched')
  t.same(inside.seen, [])
})

void t.test('redirects are followed a few times, and only to http', async (t) => {
  const { url, seen } = await serve(t, (req, res) => {
    const redirects = Number(req.url?.slice(1))
    if (redirects === 0) return picture(req, res)
    res.writeHead(redirects === 9 ? 301 : 307, {
      location: redirects === 9 ? 'file:///etc/passwd' : `/${redirects - 1}`,
    })
    res.end('moved')
  })
  t.equal((await fetcher(t).fetch(`${url}/3`, NEVER)).mediaType, 'image/png')
  t.same(seen, ['/3', '/2', '/1', '/0'])
  t.equal(await failure(fetcher(t).fetch(`${url}/4`, NEVER)), 'the URL redirects too often')
  t.match(await failure(fetcher(t).fetch(`${url}/9`, NEVER)), /neither http nor https/)
})

void t.test('DNS rebinding: the address of the connected socket is checked', async (t) => {
  const inside = await serve(t, picture, '127.0.0.2')
  // A lookup without any check, so that only the socket's own address is checked.
  const lookup: LookupFunction = (_name, options, callback) => {
    if (options.all === true) callback(null, [{ address: '127.0.0.2', family: 4 }])
    else callback(null, '127.0.0.2', 4)
  }
  const mediaFetcher = fetcher(t, {}, { ...OUTSIDE, lookup })
  const url = `http://pictures.example:${inside.port}/`
  t.equal(await failure(mediaFetcher.fetch(url, NEVER)), 'the URL could not be fetched')
  t.same(inside.seen, [], 'not a byte was sent')
})

void t.test('size: at the limit and one byte beyond, declared or not', async (t) => {
  let size = 0
  let declared = true
  const { url } = await serve(t, (_req, res) => {
    const body = Buffer.concat([PNG, Buffer.alloc(size - PNG.length)])
    if (declared) res.setHeader('content-length', size)
    res.write(body.subarray(0, 500))
    res.end(body.subarray(500))
  })
  for (declared of [true, false]) {
    size = 1000
    t.equal((await fetcher(t).fetch(url, NEVER)).bytes.length, 1000)
    size = 1001
    t.equal(
      await failure(fetcher(t).fetch(url, NEVER)),
      'the URL leads to more than 1000 bytes',
      `declared: ${declared}`,
    )
  }
})

void t.test('a server that is slow, truncates or refuses', async (t) => {
  const { url } = await serve(t, (req, res) => {
    if (req.url === '/404') res.writeHead(404).end()
    else if (req.url === '/cut') {
      res.writeHead(200, { 'content-length': 100 })
      res.write(PNG, () => res.destroy())
    } else if (req.url === '/drip') res.writeHead(200).write(PNG)
  })
  t.equal(await failure(fetcher(t).fetch(`${url}/404`, NEVER)), 'the URL answered 404')
  t.equal(await failure(fetcher(t).fetch(`${url}/cut`, NEVER)), 'the URL could not be fetched')
  const hasty = fetcher(t, { timeoutMs: 200 })
  t.equal(await failure(hasty.fetch(`${url}/drip`, NEVER)), 'the URL took too long')
  t.equal(await failure(hasty.fetch(`${url}/hang`, NEVER)), 'the URL took too long')
})

void t.test('no credentials in a URL, and no other scheme', async (t) => {
  const mediaFetcher = fetcher(t)
  t.match(await failure(mediaFetcher.fetch('http://user:pw@127.0.0.1/', NEVER)), /user or password/)
  t.match(await failure(mediaFetcher.fetch('ftp://127.0.0.1/', NEVER)), /neither http nor https/)
  t.equal(await failure(mediaFetcher.fetch('http://', NEVER)), 'the URL is not valid')
})

void t.test('at most the allowed number at once; the others wait', async (t) => {
  let open = 0
  let maxRunning = 0
  const { url } = await serve(t, (req, res) => {
    open += 1
    maxRunning = Math.max(maxRunning, open)
    setTimeout(() => {
      open -= 1
      picture(req, res)
    }, 30)
  })
  const mediaFetcher = fetcher(t)
  await Promise.all([1, 2, 3, 4, 5].map((n) => mediaFetcher.fetch(`${url}/${n}`, NEVER)))
  t.equal(maxRunning, 2)
})

void t.test('a client that leaves ends the fetch with its own reason', async (t) => {
  const { url } = await serve(t, () => undefined)
  const aborter = new AbortController()
  const left = new Error('left')
  setTimeout(() => aborter.abort(left), 50)
  await t.rejects(fetcher(t).fetch(url, aborter.signal), left)
})
