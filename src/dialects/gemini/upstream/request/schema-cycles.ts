/**
 * Finds the cycles of a directed graph with Tarjan's algorithm for strongly connected components.
 * Linear in nodes and edges, and iterative: a chain of thousands of nodes does not overflow the stack.
 */

/** A node on the path from the start, and its remaining edges. */
interface Step {
  readonly node: string
  readonly next: Iterator<string, undefined>
}

/** Numbers the nodes. Two nodes have the same number exactly if each is reachable from the other. */
export function cyclesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): Map<string, number> {
  const search = new Search(edges)
  for (const node of edges.keys()) search.from(node)
  return search.cycles
}

class Search {
  readonly cycles = new Map<string, number>()
  private readonly edges: ReadonlyMap<string, ReadonlySet<string>>
  /** The visiting order of each node, and the earliest node known to be reachable from it. */
  private readonly visited = new Map<string, number>()
  private readonly earliest = new Map<string, number>()
  /** Nodes without a number, in visiting order. */
  private readonly open: string[] = []

  constructor(edges: ReadonlyMap<string, ReadonlySet<string>>) {
    this.edges = edges
  }

  from(start: string): void {
    if (this.visited.has(start)) return
    const path: Step[] = [this.enter(start)]
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const next: IteratorResult<string, undefined> = step.next.next()
      const to = next.value
      if (to === undefined) {
        path.pop()
        this.leave(step.node, path.at(-1)?.node)
      } else if (!this.visited.has(to)) path.push(this.enter(to))
      else if (!this.cycles.has(to)) this.lower(step.node, this.visited.get(to) ?? 0)
    }
  }

  private enter(node: string): Step {
    const at = this.visited.size
    this.visited.set(node, at)
    this.earliest.set(node, at)
    this.open.push(node)
    return { node, next: (this.edges.get(node) ?? new Set<string>()).values() }
  }

  private leave(node: string, before: string | undefined): void {
    const earliest = this.earliest.get(node) ?? 0
    if (before !== undefined) this.lower(before, earliest)
    const at = this.visited.get(node)
    if (at === undefined || earliest !== at) return
    for (let each = this.open.pop(); each !== undefined; each = this.open.pop()) {
      this.cycles.set(each, at)
      if (each === node) return
    }
  }

  private lower(node: string, to: number): void {
    if (to < (this.earliest.get(node) ?? 0)) this.earliest.set(node, to)
  }
}
