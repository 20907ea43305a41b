// What the server has to say. Addresses are relative: the token is part of the page's own address.

async function get(address, options) {
  const response = await fetch(address, options);
  if (!response.ok && response.status !== 304) throw new Error((await response.text()).trim() || response.statusText);
  return response;
}

export const runs = async () => (await get('api/runs')).json();
export const run = async (index) => (await get(`api/runs/${index}`)).json();
export const summary = async (index) => (await get(`api/runs/${index}/summary`)).json();
export const config = async (index) => (await get(`api/runs/${index}/config`)).text();
export const figureAddress = (index, name, version) => `api/runs/${index}/figures/${name}?v=${version}`;
export const imageAddress = (index, name) => `api/runs/${index}/image/${name}`;

export async function leds(index, withMisfits) {
  return (await get(`api/runs/${index}/leds${withMisfits ? '?misfits=1' : ''}`)).json();
}

export async function metrics(index, known) {
  return (await get(`api/runs/${index}/metrics?from=${known.count}&generation=${known.generation}`)).json();
}

/** An image with its scale, or `known` itself if the server says that it has not changed. */
export async function image(address, known) {
  const headers = known ? { 'If-None-Match': known.version } : {};
  const response = await get(address, { headers });
  if (response.status === 304) return known;
  const numbers = (name) => response.headers.get(name).split(',').map(Number);
  const [rows, columns] = numbers('X-Shape');
  return {
    values: new Float32Array(await response.arrayBuffer()),
    rows,
    columns,
    step: numbers('X-Step'),
    axisUnit: response.headers.get('X-Axis-Unit'),
    unit: response.headers.get('X-Unit'),
    centred: response.headers.get('X-Centred') === '1',
    version: response.headers.get('ETag'),
  };
}

/** Calls `changed(run, kinds)` for each change, and `back()` whenever the connection is there (again). */
export function listen(changed, back, lost) {
  const events = new EventSource('api/events');
  events.addEventListener('hello', back);
  events.addEventListener('change', (event) => {
    const { run: index, changed: kinds } = JSON.parse(event.data);
    changed(index, kinds);
  });
  events.addEventListener('error', lost);
}
