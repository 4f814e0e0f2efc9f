export default function Sessions() {
  return (
    <section class="page">
      <h1>Sessions</h1>
    </section>
  );
}
