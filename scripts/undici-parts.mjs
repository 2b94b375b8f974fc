/**
 * What the bundle has of the package undici, in place of its index: that also loads `fetch`, WebSockets,
 * mocks and caches, two thirds of its code, in each process. An import of anything else fails to build.
 */
import 'undici/lib/global.js'
import api from 'undici/lib/api/index.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'

export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as Agent } from 'undici/lib/dispatcher/agent.js'
export { default as EnvHttpProxyAgent } from 'undici/lib/dispatcher/env-http-proxy-agent.js'
export { default as Pool } from 'undici/lib/dispatcher/pool.js'
export { default as ProxyAgent } from 'undici/lib/dispatcher/proxy-agent.js'

// As the index does.
Object.assign(Dispatcher.prototype, api)
